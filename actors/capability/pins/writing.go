package pins

import (
	"cmp"
	"encoding/json/v2"
	"io"
	"maps"
	"slices"
	"time"
)

// lines are those that tell of what changed: scopes that went first, for their names may have come back.
func (j *journal) lines(work dirty) ([]byte, error) {
	var text []byte
	add := func(r record) error {
		line, err := r.line()
		text = append(text, line...)
		return err
	}
	now := j.now().UTC().Truncate(time.Second)
	for _, scope := range work.drops {
		if err := add(record{Op: opDrop, At: now, Scope: scope}); err != nil {
			return nil, err
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(work.tools), byOwner) {
		s := j.table.find(k.owner)
		if s == nil {
			continue
		}
		if p := s.get(k.tool); p != nil {
			if err := add(recordOf(work.tools[k], k, p)); err != nil {
				return nil, err
			}
		}
	}
	for _, scope := range slices.Sorted(maps.Keys(work.scopes)) {
		if err := add(record{Op: opUsed, At: now, Scope: scope}); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// byOwner puts tools of one owner beside each other.
func byOwner(a, b key) int {
	return cmp.Or(cmp.Compare(a.owner.Scope, b.owner.Scope), cmp.Compare(a.owner.Server, b.owner.Server), cmp.Compare(a.tool, b.tool))
}

// write writes all that is known as a whole file.
func (t *table) write(out io.Writer, h header, now time.Time) error {
	first, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if _, err := out.Write(append(first, '\n')); err != nil {
		return err
	}
	put := func(r record) error {
		line, err := r.line()
		if err == nil {
			_, err = out.Write(line)
		}
		return err
	}
	if t.doubt.Load() {
		if err := put(record{Op: opDoubt, At: now.UTC().Truncate(time.Second)}); err != nil {
			return err
		}
	}
	for _, sc := range t.byUse() {
		for _, server := range sc.servers {
			for _, tool := range slices.Sorted(maps.Keys(server.tools)) {
				if err := put(recordOf(opPin, key{server.owner, tool}, server.tools[tool])); err != nil {
					return err
				}
			}
		}
		if sc.name != "" {
			if err := put(record{Op: opUsed, At: time.Unix(sc.used, 0).UTC(), Scope: sc.name}); err != nil {
				return err
			}
		}
	}
	return nil
}

// text is about as long as a whole file would be, at most.
func (t *table) text() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return 2 * (t.bytes[0] + t.bytes[1]) // what is kept in 384 bytes of memory is written in some 600
}
