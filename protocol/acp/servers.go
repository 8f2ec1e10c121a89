package acp

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// A Form is how a client declared a server.
type Form uint8

// The forms of declarations.
const (
	FormUnknown  Form = iota // nothing that the pod knows
	FormID                   // {type:"acp", name, id}: generation A
	FormServerID             // {type:"acp", name, serverId}: generation B, or C
	FormURL                  // {type:"http", name, url:"acp:…"}: generation 0
	FormStdio                // a command; never started
	FormHTTP                 // a url; never dialled
	FormSSE                  // a url; never dialled
)

func (f Form) String() string {
	return [...]string{"unknown", "id", "serverId", "acp url", "stdio", "http", "sse"}[f]
}

// Tunnels reports that a server of this form is served over the ACP connection.
func (f Form) Tunnels() bool { return f == FormID || f == FormServerID || f == FormURL }

// A Verdict is what becomes of a declaration, before any grant is looked at.
type Verdict uint8

// The verdicts.
const (
	Connect    Verdict = iota // to be connected, if it is granted
	Refused                   // its name or id is malformed: state refused
	Ignored                   // not served over ACP, or not a declaration at all: state ignored
	Repeated                  // its id stands before: the first counts, this one is not there
	Superseded                // its name stands again later: the last counts; state superseded
)

func (v Verdict) String() string {
	return [...]string{"connect", "refused", "ignored", "repeated", "superseded"}[v]
}

// Bounds of a declaration.
const (
	MaxNameBytes  = 64   // of a server's name
	MaxServerID   = 1024 // bytes of a server's id
	MaxDeclared   = 256  // entries of one array, of any form
	shownIDBytes  = 64
	schemeACP     = "acp:"
	transportACP  = "acp"
	transportHTTP = "http"
)

// A Declared is one entry of mcpServers. Strings are copies; Tools aliases the array.
type Declared struct {
	Index   int
	Name    string // cut to 64 characters when it is malformed
	ID      string // id, serverId or the whole acp: url; cut likewise
	Form    Form
	Tools   []byte // the array _meta["acpod.dev/tools"], nil when there is none
	Verdict Verdict
	Reason  string // why it is not to be connected; one line
}

// ParseServers reads an array of declarations. Every entry is in the list with its
// verdict, so that a client can be told what became of each. It is an error, a
// *jsonrpc.Error, when raw is no array or has more than MaxDeclared entries.
func ParseServers(raw []byte) ([]Declared, error) {
	elements, err := jsonrpc.Elements(raw)
	if err != nil {
		return nil, jsonrpc.BadParams("mcpServers must be an array")
	}
	var list []Declared
	for n, e := range elements {
		if n == MaxDeclared {
			return nil, jsonrpc.BadParams("mcpServers has more than %d entries", MaxDeclared)
		}
		d := declared(e)
		d.Index = n
		list = append(list, d)
	}
	byID, byName := map[string]bool{}, map[string]int{}
	for n := range list {
		d := &list[n]
		if d.Verdict != Connect {
			continue
		}
		if byID[d.ID] {
			d.Verdict, d.Reason = Repeated, "another entry has the same id"
			continue
		}
		byID[d.ID] = true
		if earlier, ok := byName[d.Name]; ok {
			list[earlier].Verdict, list[earlier].Reason = Superseded, "a later entry has the same name"
		}
		byName[d.Name] = n
	}
	return list, nil
}

// CountServers is how many declarations count against the limit a session: those
// served over ACP, each id once, whatever else is wrong with them.
func CountServers(list []Declared) int {
	n := 0
	for _, d := range list {
		if d.Form.Tunnels() && d.Verdict != Repeated {
			n++
		}
	}
	return n
}

// CheckServers refuses a list of more than limit servers, before anything is opened.
func CheckServers(list []Declared, limit int) *jsonrpc.Error {
	n := CountServers(list)
	if n <= limit {
		return nil
	}
	e := jsonrpc.Overloaded(jsonrpc.OverloadData{Scope: "servers_per_session", Limit: int64(limit), Used: int64(n)})
	e.Message = fmt.Sprintf("%d servers declared, more than %d a session", n, limit)
	return e
}

// declared reads one entry.
func declared(raw []byte) Declared {
	o, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return Declared{Verdict: Ignored, Reason: "not an object"}
	}
	if err := o.Unique("type", "name", "id", "serverId", "url", "_meta"); err != nil {
		return Declared{Verdict: Ignored, Reason: err.Error()}
	}
	d := Declared{Form: FormUnknown}
	kind, kindErr := o.Text("type")
	name, nameErr := o.Text("name")
	d.Name = name
	var idErr error
	switch {
	case kindErr != nil:
		return d.ignored("type is no string")
	case kind == transportACP && o.Has("serverId"):
		d.Form = FormServerID
		d.ID, idErr = o.Text("serverId")
	case kind == transportACP:
		d.Form = FormID
		d.ID, idErr = o.Text("id")
	case kind == transportHTTP:
		url, _ := o.Text("url")
		if !strings.HasPrefix(url, schemeACP) {
			d.Form = FormHTTP
			return d.ignored("a client's http server is never dialled")
		}
		d.Form, d.ID = FormURL, url
	case kind == "sse":
		d.Form = FormSSE
		return d.ignored("a client's sse server is never dialled")
	case o.Has("command"):
		d.Form = FormStdio
		return d.ignored("a client's command is never started")
	default:
		return d.ignored("unknown type")
	}
	if nameErr != nil || !ValidServerName(name) {
		return d.refused("the name must be 1 to 64 characters of A-Z, a-z, 0-9, _ and -")
	}
	if idErr != nil || d.ID == "" || len(d.ID) > MaxServerID || d.ID == schemeACP {
		return d.refused(fmt.Sprintf("the id must be a string of 1 to %d bytes", MaxServerID))
	}
	if meta, ok := member(o, "_meta"); ok && meta.Unique(MetaTools) == nil {
		if tools, _ := meta.Get(MetaTools); jsonrpc.IsArray(tools) {
			d.Tools = tools
		}
	}
	return d
}

func (d Declared) ignored(reason string) Declared { return d.rejected(Ignored, reason) }
func (d Declared) refused(reason string) Declared { return d.rejected(Refused, reason) }

func (d Declared) rejected(v Verdict, reason string) Declared {
	d.Verdict, d.Reason = v, reason
	d.Name, d.ID = cut(d.Name, MaxNameBytes), cut(d.ID, shownIDBytes)
	return d
}

// ValidServerName reports whether name is 1 to 64 of [A-Za-z0-9_-].
func ValidServerName(name string) bool {
	if name == "" || len(name) > MaxNameBytes {
		return false
	}
	for _, c := range []byte(name) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// cut shortens s to at most n bytes without splitting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
