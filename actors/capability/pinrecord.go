package capability

import (
	"cmp"
	"encoding/base64"
	"encoding/json/v2"
	"slices"
)

// A session whose client will not be known again pins its servers' tools for its own life, which is longer than that of a desk, or of a pod: its
// record brings them back.

// pinRecord is one of those pins, written down.
type pinRecord struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
	Digest string `json:"digest"` // base64 of the version and the five sums
}

// ownPinsBytes bounds what is written down, in bytes: some 700 tools. Those behind are pinned anew when they come again.
const ownPinsBytes = 256 << 10

// OwnPins is what the session's own servers were when nobody else remembers it, as JSON; nil = there is nothing to keep.
func (v *View) OwnPins() []byte {
	own := v.pinning.own
	if own == nil {
		return nil
	}
	own.mu.Lock()
	list := make([]pinRecord, 0, len(own.seen))
	for at, p := range own.seen {
		list = append(list, pinRecord{at.server, at.tool, p.digest.text()})
	}
	own.mu.Unlock()
	slices.SortFunc(list, func(a, b pinRecord) int { return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tool, b.Tool)) })
	size := 0
	for i, r := range list {
		if size += len(r.Server) + len(r.Tool) + len(r.Digest) + 64; size > ownPinsBytes {
			list = list[:i]
			break
		}
	}
	if len(list) == 0 {
		return nil
	}
	raw, err := json.Marshal(list)
	if err != nil { // a name that is no text
		return nil
	}
	return raw
}

// sessionPinsOf reads them again. What cannot be read is pinned anew.
func sessionPinsOf(raw []byte) *sessionPins {
	p := newSessionPins()
	var list []pinRecord
	if len(raw) > 2*ownPinsBytes || json.Unmarshal(raw, &list) != nil {
		return p
	}
	for _, r := range list {
		if d, ok := digestOfText(r.Digest); ok {
			p.seen[pinned{r.Server, r.Tool}] = &pin{digest: d}
		}
	}
	return p
}

func (d *Digest) sums() [][32]byte {
	return [][32]byte{d.Title, d.Description, d.InputSchema, d.OutputSchema, d.Annotations}
}

func (d *Digest) text() string {
	b := []byte{d.Version}
	for _, sum := range d.sums() {
		b = append(b, sum[:]...)
	}
	return base64.RawStdEncoding.EncodeToString(b)
}

func digestOfText(text string) (d Digest, ok bool) {
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(b) != 1+5*32 {
		return d, false
	}
	d.Version = b[0]
	for i, sum := range []*[32]byte{&d.Title, &d.Description, &d.InputSchema, &d.OutputSchema, &d.Annotations} {
		copy(sum[:], b[1+32*i:])
	}
	return d, true
}
