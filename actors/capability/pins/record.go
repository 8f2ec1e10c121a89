package pins

import (
	"encoding/base64"
	"encoding/json/v2"
	"errors"
	"fmt"
	"time"

	"github.com/acpod/acpod/actors/capability"
)

// fileVersion is that of the first line.
const fileVersion = 1

// lineBytes bounds one line; a longer one is not one of ours.
const lineBytes = 8 << 10

// What a line does.
const (
	opPin    = "pin"    // pins a tool, unless it is pinned; tells of a held definition
	opSet    = "set"    // pins a tool anew: it was accepted, or its recipe renewed
	opForget = "forget" // a tool
	opDrop   = "drop"   // a whole scope, to make room
	opUsed   = "used"   // a scope was used
	opDoubt  = "doubt"  // pins were lost: a tool without one may not be new
	opTrust  = "trust"  // the operator says that it is
)

// header is the first line of the file. Its id is another one whenever the file is written anew: what the file system knows it by may come again.
type header struct {
	Pins int    `json:"pins"`
	ID   string `json:"id"`
}

// record is every other line.
type record struct {
	Op     string    `json:"op"`
	At     time.Time `json:"at"`
	Scope  string    `json:"scope,omitzero"`
	Server string    `json:"server,omitzero"`
	Tool   string    `json:"tool,omitzero"`
	Pin    *digest   `json:"pin,omitzero"`
	Held   *digest   `json:"held,omitzero"`
	HeldAt time.Time `json:"held_at,omitzero"`
}

// digest is a capability.Digest as it is written.
type digest struct {
	V            uint8  `json:"v"`
	Title        string `json:"title"`
	Description  string `json:"description"`
	InputSchema  string `json:"input_schema"`
	OutputSchema string `json:"output_schema"`
	Annotations  string `json:"annotations"`
}

func written(d capability.Digest) *digest {
	text := func(sum [32]byte) string { return base64.RawURLEncoding.EncodeToString(sum[:]) }
	return &digest{d.Version, text(d.Title), text(d.Description), text(d.InputSchema), text(d.OutputSchema), text(d.Annotations)}
}

func (d *digest) read() (out capability.Digest, err error) {
	part := func(text string) (sum [32]byte) {
		raw, bad := base64.RawURLEncoding.Strict().DecodeString(text)
		if bad != nil || len(raw) != len(sum) {
			err = errors.New("a digest is not 32 bytes")
			return sum
		}
		return [32]byte(raw)
	}
	out = capability.Digest{Version: d.V, Title: part(d.Title), Description: part(d.Description),
		InputSchema: part(d.InputSchema), OutputSchema: part(d.OutputSchema), Annotations: part(d.Annotations)}
	return out, err
}

// line writes a record, its newline included.
func (r record) line() ([]byte, error) {
	text, err := json.Marshal(r)
	return append(text, '\n'), err
}

// entry is what a record says of a tool.
func (r record) entry() (*pin, error) {
	p := &pin{at: r.At.Unix()}
	var err error
	if r.Pin != nil {
		p.pinned = true
		if p.digest, err = r.Pin.read(); err != nil {
			return nil, err
		}
		p.sum = p.digest.Sum()
	}
	if r.Held != nil {
		h := &held{at: r.HeldAt.Unix()}
		if h.digest, err = r.Held.read(); err != nil {
			return nil, err
		}
		h.sum = h.digest.Sum()
		p.held = h
	}
	if r.Pin == nil && r.Held == nil {
		return nil, errors.New("it says nothing of its tool")
	}
	return p, nil
}

// parse reads one line, without its newline.
func parse(line []byte) (record, error) {
	var r record
	if err := json.Unmarshal(line, &r, json.RejectUnknownMembers(true)); err != nil {
		return record{}, err
	}
	switch r.Op {
	case opPin, opSet, opForget:
		if r.Server == "" || r.Tool == "" {
			return record{}, fmt.Errorf("%s without a tool", r.Op)
		}
	case opDrop, opUsed:
		if r.Scope == "" {
			return record{}, fmt.Errorf("%s without a scope", r.Op)
		}
	case opDoubt, opTrust:
	default:
		return record{}, errors.New("an unknown op")
	}
	return r, nil
}

// recordOf is the state of a tool as a line.
func recordOf(op string, k key, p *pin) record {
	r := record{Op: op, At: time.Unix(p.at, 0).UTC(), Scope: k.owner.Scope, Server: k.owner.Server, Tool: k.tool}
	if p.pinned {
		r.Pin = written(p.digest)
	}
	if p.held != nil {
		r.Held, r.HeldAt = written(p.held.digest), time.Unix(p.held.at, 0).UTC()
	}
	return r
}
