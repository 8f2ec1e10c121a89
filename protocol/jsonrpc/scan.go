package jsonrpc

import (
	"bytes"
	"fmt"
	"strings"
)

// MaxMembers is how many members an envelope may have. JSON-RPC defines six; the
// bound keeps the search for repeated ones cheap.
const MaxMembers = 64

// MaxNameBytes is how long the name of an envelope's member may be, quotes included:
// names are compared with each other, which must cost little whatever a peer sends.
const MaxNameBytes = 1024

// maxMethodBytes is how much of a method or version is decoded: more than the
// longest that anybody serves, so that what is longer stays unknown, and its copy
// costs nothing that a frame's own bytes would not pay for.
const maxMethodBytes = 256

// Scan reads the envelope of one frame in one pass. The Frame is filled as far as
// it is known also beside a Fault, so that what is refused can be counted by method
// and size. The order of the checks is the contract's:
//
//  1. JSON text, at most MaxDepth deep, else ParseError with id null;
//  2. an object without repeated members, else InvalidRequest with id null: a batch
//     is refused, and so is a member that is spelled twice in different escapes, or
//     whose name is longer than MaxNameBytes;
//  3. no id: a notification. Whatever else is wrong with it is silent. The id null
//     is an id;
//  4. an id that is no string, integer or null (1.0 and 1e3 are no integers), or
//     longer than MaxIDBytes: InvalidRequest with id null;
//  5. ScanLimit's bound on requests and notifications;
//  6. no method, but result or error: a response;
//  7. no method, or no jsonrpc: InvalidRequest with id null;
//  8. another version than 2.0: InvalidRequest with the frame's id.
//
// The frame's total size is bounded by whoever read it.
func Scan(b []byte) (Frame, *Fault) { return ScanLimit(b, 0) }

// ScanLimit is Scan with step 5: a frame with a method that is longer than limit
// bytes is refused with Overload and its own id; 0 is no limit. Responses are not
// bounded by it.
func ScanLimit(b []byte, limit int) (Frame, *Fault) {
	f := Frame{Size: len(b)}
	e, bad := readEnvelope(b)
	if bad != nil {
		return f, bad
	}
	f.Variant = e.variant()
	f.Params = e.at(params)
	if m := e.at(method); m != nil {
		f.Method, f.HasMethod = String(beginning(m))
	}
	f.Version = versionOf(e.at(jsonrpc))
	if raw := e.at(id); raw == nil {
		f.Kind = Notification
	} else if len(raw) > MaxIDBytes {
		return f, invalid(fmt.Sprintf("the id has %d bytes, more than %d", len(raw), MaxIDBytes), NullID())
	} else if isInteger(raw) || raw[0] == '"' || IsNull(raw) {
		f.ID = ID{string(raw)}
	} else {
		return f, invalid("the id must be a string, an integer or null", NullID())
	}
	if f.HasMethod {
		if f.Kind != Notification {
			f.Kind = Request
		}
		return f, checkCall(&f, limit)
	}
	if e.at(method) == nil && f.Kind != Notification && (e.at(result) != nil || e.at(errorMember) != nil) {
		f.Kind = Response
		f.Result, f.Error = e.at(result), e.at(errorMember)
		switch {
		case f.Result == nil || f.Error == nil:
		case IsNull(f.Error):
			f.Error = nil // "error": null beside a result is an older way to say none
		default:
			f.Result = nil
		}
		return f, checkResponse(&f)
	}
	return f, &Fault{Code: InvalidRequest, Message: "not a request object: it has no method", ID: NullID(), Kind: f.Kind}
}

func checkCall(f *Frame, limit int) *Fault {
	switch {
	case limit > 0 && f.Size > limit:
		fault := f.refused("the frame of %s has %d bytes, more than %d", Show(f.Method), f.Size, limit)
		fault.Code, fault.Size, fault.Limit = Overload, f.Size, limit
		return fault
	case f.Version == Version:
		return nil
	case f.Version == "":
		fault := f.refused(`not a request object: it has no "jsonrpc": %q`, Version)
		fault.ID = NullID()
		return fault
	}
	return f.refused("jsonrpc must be %q, not %s", Version, Show(f.Version))
}

// refused is the fault of a request or notification whose id is known.
func (f *Frame) refused(format string, args ...any) *Fault {
	return &Fault{Code: InvalidRequest, Message: fmt.Sprintf(format, args...), ID: f.ID, Kind: f.Kind}
}

// checkResponse refuses an answer whose id can be none of ours, which are integers.
// One with the id null is the peer's complaint about a frame that it could not
// read; to answer that would start a quarrel without end.
func checkResponse(f *Frame) *Fault {
	if _, ok := f.ID.Int(); ok || f.ID.IsNull() || f.ID.raw[0] != '"' { // a number of any size: unknown, and so only counted
		return nil
	}
	return &Fault{Code: InvalidRequest, Message: "an answer to a request that was never sent", ID: NullID(), Kind: Request}
}

func invalid(message string, id ID) *Fault {
	return &Fault{Code: InvalidRequest, Message: message, ID: id, Kind: Request}
}

func notJSON(v verdict) *Fault {
	message := "the frame is not JSON"
	if v == tooDeep {
		message = fmt.Sprintf("the frame nests deeper than %d", MaxDepth)
	}
	return &Fault{Code: CodeParse, Message: message, ID: NullID(), Kind: Request}
}

// The members of an envelope that have a meaning.
const (
	jsonrpc = iota
	id
	method
	params
	result
	errorMember
	known
)

// memberOf is the index of a name literal among the known ones, known for another.
func memberOf(literal []byte) int {
	name := literal[1 : len(literal)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		decoded, _ := String(literal)
		name = []byte(decoded)
	}
	switch string(name) {
	case "jsonrpc":
		return jsonrpc
	case "id":
		return id
	case "method":
		return method
	case "params":
		return params
	case "result":
		return result
	case "error":
		return errorMember
	}
	return known
}

// versionOf decodes the member jsonrpc; "" when it is absent or no string.
func versionOf(raw []byte) string {
	if string(raw) == `"`+Version+`"` {
		return Version
	}
	v, _ := String(beginning(raw))
	return v
}

// beginning is a string literal cut to maxMethodBytes of its text, never inside an
// escape; any other value as it is.
func beginning(raw []byte) []byte {
	if len(raw) <= maxMethodBytes+2 || raw[0] != '"' {
		return raw
	}
	end := 1
	for end <= maxMethodBytes {
		switch {
		case raw[end] != '\\':
			end++
		case raw[end+1] == 'u':
			end += 6
		default:
			end += 2
		}
	}
	return append(bytes.Clone(raw[:end]), '"')
}

// A span is a range of the frame's bytes; the zero span is an absent member.
type span struct{ from, to int }

type envelope struct {
	text     []byte
	members  [known]span
	others   []span // names that have no meaning; few frames have any
	count    int
	repeated span // the name of a member that stands twice
	long     int  // bytes of a name that is longer than MaxNameBytes
}

func (e *envelope) at(member int) []byte {
	s := e.members[member]
	if s.to == 0 {
		return nil
	}
	return e.text[s.from:s.to:s.to]
}

// readEnvelope walks the whole text once. What is wrong with the envelope is only
// told when the rest was found to be JSON, because that is the earlier check.
func readEnvelope(b []byte) (e envelope, bad *Fault) {
	e.text = b
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return e, notAnObject(b)
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return e, e.closed(i + 1)
	}
	for {
		from := i
		nameEnd, value, v := skipName(b, i)
		if v == wellFormed {
			i, v = skipValue(b, value, 1)
		}
		if v != wellFormed {
			return e, notJSON(v)
		}
		e.note(span{from, nameEnd}, span{value, i})
		i = skipSpace(b, i)
		switch {
		case i < len(b) && b[i] == ',':
			i = skipSpace(b, i+1)
		case i < len(b) && b[i] == '}':
			return e, e.closed(i + 1)
		default:
			return e, notJSON(malformed)
		}
	}
}

// note takes one member down.
func (e *envelope) note(name, value span) {
	e.count++
	literal := e.text[name.from:name.to]
	if len(literal) > MaxNameBytes {
		e.long = len(literal)
		return
	}
	if k := memberOf(literal); k < known {
		if e.members[k].to != 0 {
			e.repeated = name
		}
		e.members[k] = value
		return
	}
	if len(e.others) == MaxMembers || e.repeated.to != 0 {
		return // refused anyway
	}
	for _, other := range e.others {
		if sameName(e.text[other.from:other.to], literal) {
			e.repeated = name
		}
	}
	e.others = append(e.others, name)
}

// variant is the first member without a meaning whose name differs from one that has a meaning in case alone.
func (e *envelope) variant() string {
	for _, other := range e.others {
		name, _ := String(e.text[other.from:other.to])
		for _, ours := range [...]string{"jsonrpc", "id", "method", "params", "result", "error"} {
			if strings.EqualFold(name, ours) {
				return name
			}
		}
	}
	return ""
}

// closed judges the envelope whose closing bracket stands before end.
func (e *envelope) closed(end int) *Fault {
	switch r := e.repeated; {
	case skipSpace(e.text, end) != len(e.text):
		return notJSON(malformed)
	case e.long != 0:
		return invalid(fmt.Sprintf("the name of a member has %d bytes, more than %d", e.long, MaxNameBytes), NullID())
	case r.to != 0:
		return invalid("the member "+Show(string(e.text[r.from+1:r.to-1]))+" stands twice", NullID())
	case e.count > MaxMembers:
		return invalid(fmt.Sprintf("the envelope has %d members, more than %d", e.count, MaxMembers), NullID())
	}
	return nil
}

func notAnObject(b []byte) *Fault {
	text, v := onlyValue(b)
	if v != wellFormed {
		return notJSON(v)
	}
	if text[0] == '[' {
		return invalid("batches are not supported: send one message a frame", NullID())
	}
	return invalid("not a request object", NullID())
}
