package pins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// Entry is one pinned tool, as the operator sees it.
type Entry struct {
	Scope  string    `json:"client,omitzero"` // "" = the operator's own server
	Server string    `json:"server"`
	Tool   string    `json:"tool"`
	Pinned time.Time `json:"pinned"`
	// Changed names what is not as it was pinned of the definition that was seen last; nil = nothing is held back.
	Changed []string  `json:"changed,omitzero"`
	Seen    time.Time `json:"seen,omitzero"` // when that was
}

// Listing is the whole file.
type Listing struct {
	Entries []Entry `json:"pins"`
	// Unreadable: pins were lost, so no tool is taken for a new one until [Trust].
	Unreadable bool `json:"unreadable,omitzero"`
}

// Choice says which pins an operator's act is about.
type Choice struct {
	Server string
	Tool   string // "" = all of the server
	Scope  string // of which client, by its first characters; "" = whoever has it
}

// NothingError says that a choice is about no pin.
type NothingError struct {
	Choice Choice
	Held   bool // such pins exist, but nothing of them is held back
}

func (e *NothingError) Error() string {
	name := kernel.Escape(e.Choice.Server, 64)
	if e.Choice.Tool != "" {
		name += "." + kernel.Escape(e.Choice.Tool, 64)
	}
	if e.Held {
		return "nothing of " + name + " is held back; see acpod mcp pins"
	}
	return "no tool of " + name + " is pinned; see acpod mcp pins"
}

// AmbiguousError says that several clients have a tool of that name, and that not all of them serve the same definition.
type AmbiguousError struct {
	Server, Tool string
	Scopes       []string // "" = the operator's own server
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s.%s is held back in several definitions, of %s; say which client", kernel.Escape(e.Server, 64), kernel.Escape(e.Tool, 64), strings.Join(shown(e.Scopes), ", "))
}

func shown(scopes []string) []string {
	var list []string
	for _, s := range scopes {
		list = append(list, cmp.Or(s, "the server of mcp.json"))
	}
	return list
}

// List tells what is pinned in a state folder, whether or not a pod runs: servers of the operator first, then by name.
func List(dir string) (Listing, error) {
	j, err := open(dir)
	if err != nil {
		return Listing{}, err
	}
	out := Listing{Entries: []Entry{}, Unreadable: j.table.doubt.Load()}
	j.table.each(func(k key, p *pin) { out.Entries = append(out.Entries, entryOf(k, p)) })
	return out, nil
}

// Accept pins what is held back in the definition that was seen last, and tells of what. A running pod notices within a second.
// One act accepts one definition: several clients that serve the same are accepted together, others are an *AmbiguousError.
func Accept(dir string, choice Choice) ([]Entry, error) {
	var done []Entry
	err := change(dir, func(t *table, now time.Time) (lines []record, err error) {
		known, byTool := false, map[string]key{}
		t.each(func(k key, p *pin) {
			if err != nil || !choice.is(k) {
				return
			}
			if known = true; p.held == nil {
				return
			}
			if other, twice := byTool[k.tool]; twice && t.find(other.owner).get(k.tool).held.sum != p.held.sum {
				err = &AmbiguousError{k.owner.Server, k.tool, []string{other.owner.Scope, k.owner.Scope}}
			}
			byTool[k.tool] = k
			done = append(done, entryOf(k, p))
			lines = append(lines, recordOf(opSet, k, &pin{digest: p.held.digest, pinned: true, at: now.Unix()}))
		})
		if err == nil && len(lines) == 0 {
			err = &NothingError{choice, known}
		}
		return lines, err
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

// Forget takes pins away: the next definition that is seen is pinned as the first.
func Forget(dir string, choice Choice) ([]Entry, error) {
	var done []Entry
	err := change(dir, func(t *table, now time.Time) (lines []record, err error) {
		t.each(func(k key, p *pin) {
			if choice.is(k) {
				done = append(done, entryOf(k, p))
				lines = append(lines, record{Op: opForget, At: now, Scope: k.owner.Scope, Server: k.owner.Server, Tool: k.tool})
			}
		})
		if len(lines) == 0 {
			err = &NothingError{Choice: choice}
		}
		return lines, err
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

// Trust accepts all that is held back because pins were lost; from now on a tool without a pin is a new one again.
func Trust(dir string) error {
	return change(dir, func(t *table, now time.Time) ([]record, error) {
		if !t.doubt.Load() {
			return nil, errors.New("no pins were lost; see acpod mcp pins")
		}
		return []record{{Op: opTrust, At: now}}, nil
	})
}

func (c Choice) is(k key) bool {
	return k.owner.Server == c.Server && (c.Tool == "" || k.tool == c.Tool) && (c.Scope == "" || k.owner.Scope != "" && strings.HasPrefix(k.owner.Scope, c.Scope))
}

func entryOf(k key, p *pin) Entry {
	e := Entry{Scope: k.owner.Scope, Server: k.owner.Server, Tool: k.tool, Pinned: time.Unix(p.at, 0).UTC(), Changed: p.changes()}
	if p.held != nil {
		e.Seen = time.Unix(p.held.at, 0).UTC()
	}
	return e
}

// each visits every pin: the operator's first, then by scope, server and tool.
func (t *table) each(visit func(key, *pin)) {
	var keys []key
	for _, sc := range t.byUse() {
		for _, s := range sc.servers {
			for tool := range s.tools {
				keys = append(keys, key{s.owner, tool})
			}
		}
	}
	slices.SortFunc(keys, byOwner)
	for _, k := range keys {
		visit(k, t.find(k.owner).get(k.tool))
	}
}

// open reads the file of a folder.
func open(dir string) (*journal, error) {
	j := &journal{dir: dir, table: newTable(Bytes), log: slog.New(slog.DiscardHandler), now: time.Now}
	if err := j.catchUp(); err != nil {
		if bad := (*damage)(nil); errors.As(err, &bad) {
			return nil, fmt.Errorf("%s is damaged: %w; a pod that starts moves it aside and holds back what it cannot read", j.path(), err)
		}
		return nil, fmt.Errorf("%s: %w", j.path(), err)
	}
	return j, nil
}

// change appends what decide says of the pins as they are, while nobody else writes.
func change(dir string, decide func(t *table, now time.Time) ([]record, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	unlock, err := lock(ctx, dir)
	if err != nil {
		return err
	}
	defer unlock()
	j, err := open(dir)
	if err != nil {
		return err
	}
	lines, err := decide(j.table, time.Now().UTC().Truncate(time.Second))
	if err != nil {
		return err
	}
	var text []byte
	for _, r := range lines {
		line, err := r.line()
		if err != nil {
			return err
		}
		text = append(text, line...)
	}
	if _, cut := j.size(); cut { // its writer died; what it did not end is not there
		if err := j.rewrite(); err != nil {
			return err
		}
	}
	return j.write(text)
}
