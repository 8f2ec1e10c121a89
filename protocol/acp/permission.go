package acp

import (
	"errors"
	"fmt"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Kinds of permission options.
const (
	AllowOnce    = "allow_once"
	AllowAlways  = "allow_always"
	RejectOnce   = "reject_once"
	RejectAlways = "reject_always"
)

// An Option is one of the choices that an agent gives.
type Option struct{ ID, Name, Kind string }

// A Permission is what the pod reads of session/request_permission.
type Permission struct {
	SessionID  string // the agent's id of the session
	ToolCallID string
	Title      string // of the tool call; a peer's text
	Options    []Option
}

// MaxOptions bounds the choices of one permission request.
const MaxOptions = 64

// ParsePermission reads the params of session/request_permission. An option without
// an id cannot be chosen and makes the request invalid.
func ParsePermission(params []byte) (Permission, *jsonrpc.Error) {
	o, bad := paramsObject(params, "sessionId", "options", "toolCall")
	if bad != nil {
		return Permission{}, bad
	}
	var p Permission
	var err error
	if p.SessionID, err = o.Text("sessionId"); err != nil {
		return Permission{}, jsonrpc.BadParams("%v", err)
	}
	call, _ := member(o, "toolCall")
	p.ToolCallID, _ = call.Text("toolCallId")
	p.Title, _ = call.Text("title")
	raw, _ := o.Get("options")
	options, err := jsonrpc.Elements(raw)
	if err != nil {
		return Permission{}, jsonrpc.BadParams("options must be an array")
	}
	for n, e := range options {
		opt, err := jsonrpc.ParseObject(e)
		if err == nil {
			err = opt.Unique("optionId", "kind")
		}
		if err != nil {
			return Permission{}, jsonrpc.BadParams("options[%d]: %v", n, err)
		}
		raw, _ := opt.Get("optionId")
		id, ok := jsonrpc.String(raw)
		if !ok {
			return Permission{}, jsonrpc.BadParams("options[%d].optionId must be a string", n)
		}
		if n == MaxOptions {
			return Permission{}, jsonrpc.BadParams("more than %d options", MaxOptions)
		}
		name, _ := opt.Text("name")
		kind, _ := opt.Text("kind")
		p.Options = append(p.Options, Option{ID: id, Name: name, Kind: kind})
	}
	return p, nil
}

// Rejecting is the option that refuses, the one for this time before the one for
// ever. It is found by its kind: some agents put the allowing option first.
func (p Permission) Rejecting() (Option, bool) { return p.first(RejectOnce, RejectAlways) }

// Allowing is the option that allows, the one for this time before the one for ever.
func (p Permission) Allowing() (Option, bool) { return p.first(AllowOnce, AllowAlways) }

// Offers reports whether there is an option of that id.
func (p Permission) Offers(id string) bool {
	for _, o := range p.Options {
		if o.ID == id {
			return true
		}
	}
	return false
}

func (p Permission) first(kinds ...string) (Option, bool) {
	for _, kind := range kinds {
		for _, o := range p.Options {
			if o.Kind == kind {
				return o, true
			}
		}
	}
	return Option{}, false
}

// SelectedOutcome is the result that chooses an option.
func SelectedOutcome(optionID string) []byte {
	return append(jsonrpc.AppendString([]byte(`{"outcome":{"outcome":"selected","optionId":`), optionID), "}}"...)
}

// CancelledOutcome is the result of a permission request whose turn was cancelled.
func CancelledOutcome() []byte { return []byte(`{"outcome":{"outcome":"cancelled"}}`) }

// ErrOutcome says that the answer to a permission request is none.
var ErrOutcome = errors.New("not an outcome of a permission request")

// ParseOutcome reads the answer to a permission request: the chosen option, or
// cancelled. Anything else is an error, which never allows.
func ParseOutcome(result []byte) (optionID string, cancelled bool, err error) {
	o, err := jsonrpc.ParseObject(result)
	if err != nil {
		return "", false, ErrOutcome
	}
	if err := o.Unique("outcome"); err != nil {
		return "", false, fmt.Errorf("%w: %w", ErrOutcome, err)
	}
	outcome, ok := member(o, "outcome")
	if !ok {
		return "", false, ErrOutcome
	}
	if err := outcome.Unique("outcome", "optionId"); err != nil {
		return "", false, fmt.Errorf("%w: %w", ErrOutcome, err)
	}
	kind, _ := outcome.Text("outcome")
	raw, _ := outcome.Get("optionId")
	id, chosen := jsonrpc.String(raw)
	switch {
	case kind == "cancelled":
		return "", true, nil
	case kind == "selected" && chosen:
		return id, false, nil
	}
	return "", false, ErrOutcome
}
