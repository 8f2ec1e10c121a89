package mcp

import "github.com/acpod/acpod/protocol/jsonrpc"

// A Hint is a boolean that may be absent.
type Hint uint8

// The values of a Hint.
const (
	Unsaid Hint = iota
	No
	Yes
)

// True reports whether the hint was given as true.
func (h Hint) True() bool { return h == Yes }

func boolean(o jsonrpc.Object, name string) Hint {
	raw, _ := o.Get(name)
	switch value, ok := jsonrpc.Bool(raw); {
	case !ok:
		return Unsaid
	case value:
		return Yes
	}
	return No
}
