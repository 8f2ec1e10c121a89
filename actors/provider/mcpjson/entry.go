package mcpjson

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// entry reads one server. What is wrong is a problem with its line, and the first of them leaves the entry out.
func (r *reader) entry(m member) *entry {
	e := &entryReader{reader: r, name: m.name, lines: map[string]int{}, out: &entry{server: Server{
		Name: m.name, RequestTimeout: DefaultRequestTimeout, PingTimeout: DefaultPingTimeout, File: r.path, Line: r.line(m.offset),
	}}}
	e.out.server.lines = e.lines
	if m.value.kind != '{' {
		e.wrong(m.value, "is left out: it is %s and has to be an object", m.value.what())
		return e.out
	}
	seen := map[string]bool{}
	for _, f := range m.value.members {
		if seen[f.name] && !isRemark(f.name) {
			e.wrong(node{offset: f.offset}, "is left out: %s stands twice in it", jsonrpc.Show(f.name))
		}
		seen[f.name] = true
		e.lines[f.name] = r.line(f.offset)
		read, known := fields[f.name]
		switch {
		case known && f.value.kind == 'n': // as if it was not there
		case known:
			if bad := read(e, f.value); bad != "" {
				e.wrong(f.value, "is left out: %s %s", f.name, bad)
			}
		case isRemark(f.name):
		case isFilter(f.name):
			// To go on without it would open what it was to close.
			e.wrong(node{offset: f.offset}, "is left out: %s is not known here; write tool_filter with include and exclude", jsonrpc.Show(f.name))
		default:
			e.problem(Problem{File: r.path, Line: r.line(f.offset), Server: e.name, Warning: true,
				Text: jsonrpc.Show(f.name) + " is not known here and has no effect" + meant(f.name, fieldNames)})
		}
	}
	if !e.out.bad {
		e.settle(m)
	}
	return e.out
}

// entryReader reads one entry.
type entryReader struct {
	*reader
	name  string
	out   *entry
	lines map[string]int

	kind     *Kind  // as "type" says
	urlField string // which of its names the URL has
}

// wrong leaves the entry out. Only the first reason is told: the next is often its consequence.
func (e *entryReader) wrong(at node, format string, args ...any) {
	if !e.out.bad {
		e.problem(Problem{File: e.path, Line: e.line(at.offset), Server: e.name, Text: fmt.Sprintf(format, args...)})
	}
	e.out.bad = true
}

// isFilter tells a key that would have left tools out, in this or another program.
func isFilter(name string) bool {
	return folded(name) == "toolfilter" || elsewhere[folded(name)] == "tool_filter"
}

// settle looks at the entry as a whole.
func (e *entryReader) settle(m member) {
	s := &e.out.server
	at := node{offset: m.offset}
	switch {
	case s.Command == "" && s.URL == "":
		e.wrong(at, "is left out: it has neither command nor url")
		return
	case s.Command != "" && s.URL != "":
		e.wrong(at, "is left out: it has both command and %s; keep one", e.urlField)
		return
	}
	switch {
	case e.kind != nil:
		s.Kind = *e.kind
	case s.URL != "":
		s.Kind = HTTP
	}
	if (s.Kind == Stdio) != (s.Command != "") {
		e.wrong(at, "is left out: its type is %s, and it has no %s", s.Kind, map[bool]string{true: "command", false: "url"}[s.Kind == Stdio])
		return
	}
	e.useless(s)
	e.headers(s)
}

// useless warns of fields that the kind of server has no use for.
func (e *entryReader) useless(s *Server) {
	for _, field := range []struct {
		name string
		kept bool
		set  bool
	}{
		{"args", s.Kind == Stdio, s.Args != nil}, {"env", s.Kind == Stdio, s.Env != nil}, {"cwd", s.Kind == Stdio, s.Dir != ""},
		{"headers", s.Kind != Stdio, s.Headers != nil}, {"oauth", s.Kind != Stdio, s.OAuth}, {"protocol_version", s.Kind == HTTP, s.Modern},
	} {
		if field.set && !field.kept {
			e.problem(Problem{File: e.path, Line: s.lineOf(field.name), Server: e.name, Warning: true,
				Text: fmt.Sprintf("%s has no effect on a server of type %s", field.name, s.Kind)})
		}
	}
}

// headers refuses what would contradict what the pod sends itself.
func (e *entryReader) headers(s *Server) {
	if s.Kind == Stdio {
		return
	}
	seen := map[string]bool{}
	for _, name := range sortedKeys(s.Headers) {
		at := func(format string, args ...any) {
			if !e.out.bad {
				e.problem(Problem{File: e.path, Line: s.lineOf("headers." + name), Server: e.name, Text: "is left out: " + fmt.Sprintf(format, args...)})
			}
			e.out.bad = true
		}
		switch lower := strings.ToLower(name); {
		case !isToken(name):
			at("headers: %s is no name of a header", jsonrpc.Show(name))
		case seen[lower]:
			at("headers: %s stands twice, in different case", jsonrpc.Show(name))
		case slices.Contains(reserved, lower):
			at("headers: %s is the pod's own to set", jsonrpc.Show(name))
		case lower == "authorization" && s.OAuth:
			at("headers: %s stands beside oauth; keep one", jsonrpc.Show(name))
		default:
			seen[lower] = true
		}
	}
}

// reserved are headers that the transport sets, in lower case.
var reserved = []string{
	"accept", "mcp-session-id", "last-event-id", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name", "host", "content-length",
	"transfer-encoding", "connection", "upgrade", "te", "trailer", "accept-encoding", "proxy-authorization", "proxy-connection", "keep-alive", "expect",
}

// isToken says whether name can be a header's name (RFC 9110, 5.6.2).
func isToken(name string) bool {
	return name != "" && len(name) <= 256 && !strings.ContainsFunc(name, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
}

// fields are the members of an entry that mean something. Each gives what is wrong with its value, or nothing.
var fields = map[string]func(e *entryReader, n node) string{
	"type":             (*entryReader).readType,
	"transport":        (*entryReader).readType,
	"command":          (*entryReader).readCommand,
	"args":             func(e *entryReader, n node) (bad string) { e.out.server.Args, bad = n.strings(MaxArgs); return bad },
	"env":              (*entryReader).readEnv,
	"cwd":              func(e *entryReader, n node) (bad string) { e.out.server.Dir, bad = n.str(); return bad },
	"url":              func(e *entryReader, n node) string { return e.readURL("url", n) },
	"serverUrl":        func(e *entryReader, n node) string { return e.readURL("serverUrl", n) },
	"httpUrl":          func(e *entryReader, n node) string { return e.readURL("httpUrl", n) },
	"headers":          (*entryReader).readHeaders,
	"oauth":            (*entryReader).readOAuth,
	"protocol_version": (*entryReader).readVersion,
	"disabled": func(e *entryReader, n node) (bad string) {
		v, bad := n.boolean()
		e.out.disabled = e.out.disabled || v
		return bad
	},
	"enabled": func(e *entryReader, n node) (bad string) {
		v, bad := n.boolean()
		e.out.disabled = e.out.disabled || bad == "" && !v
		return bad
	},
	"tool_filter": (*entryReader).readFilter,
	"isolation":   (*entryReader).readIsolation,
	"log_level":   (*entryReader).readLogLevel,
	"request_timeout_secs": func(e *entryReader, n node) (bad string) {
		e.out.server.RequestTimeout, bad = n.seconds(10*time.Millisecond, maxTimeout)
		return bad
	},
	"ping_interval_secs": func(e *entryReader, n node) (bad string) {
		e.out.server.PingInterval, bad = n.seconds(0, maxTimeout)
		return bad
	},
	"ping_timeout_secs": func(e *entryReader, n node) (bad string) {
		e.out.server.PingTimeout, bad = n.seconds(10*time.Millisecond, maxTimeout)
		return bad
	},
	"max_concurrency": func(e *entryReader, n node) (bad string) {
		e.out.server.Concurrency, bad = n.whole(1, maxConcurrency)
		return bad
	},
	"rate_per_second": (*entryReader).readRate,
}

var fieldNames = sortedKeys(fields)

func (e *entryReader) readType(n node) string {
	s, bad := n.str()
	if bad != "" {
		return bad
	}
	kind, ok := kinds[folded(s)]
	if !ok {
		return "is " + jsonrpc.Show(s) + " and has to be stdio, http or sse"
	}
	if e.kind != nil && *e.kind != kind {
		return "says another kind than the one before it"
	}
	e.kind = &kind
	return ""
}

// kinds are the words of the field for each kind, folded: streamable-http, streamableHttp and streamable_http are one.
var kinds = map[string]Kind{"stdio": Stdio, "local": Stdio, "http": HTTP, "streamablehttp": HTTP, "sse": SSE}

func (e *entryReader) readCommand(n node) string {
	if n.kind == '[' {
		return "is a list and has to be a string: the program alone; its arguments stand in args"
	}
	s, bad := n.str()
	if bad == "" && strings.TrimSpace(s) == "" {
		bad = "is empty"
	}
	e.out.server.Command = s
	return bad
}

func (e *entryReader) readURL(field string, n node) string {
	if e.urlField != "" {
		return "stands beside " + e.urlField + "; keep one"
	}
	s, bad := n.str()
	if bad == "" && strings.TrimSpace(s) == "" {
		bad = "is empty"
	}
	e.urlField, e.out.server.URL = field, s
	e.lines["url"] = e.lines[field]
	return bad
}

func (e *entryReader) readEnv(n node) string {
	members, bad := n.table(MaxEnv)
	if bad != "" {
		return bad
	}
	e.out.server.Env = map[string]string{}
	for _, m := range members {
		value, bad := m.value.str()
		switch {
		case m.name == "" || strings.ContainsAny(m.name, "=\x00"):
			return "has a name that no variable can have"
		case bad != "":
			return jsonrpc.Show(m.name) + " " + bad + inQuotes(m.value)
		case hasKey(e.out.server.Env, m.name):
			return jsonrpc.Show(m.name) + " stands twice"
		}
		e.out.server.Env[m.name] = value
		e.lines["env."+m.name] = e.line(m.offset)
	}
	return ""
}

func (e *entryReader) readHeaders(n node) string {
	members, bad := n.table(MaxHeaders)
	if bad != "" {
		return bad
	}
	e.out.server.Headers = map[string]string{}
	for _, m := range members {
		switch {
		case m.value.kind != '"':
			return jsonrpc.Show(m.name) + " is " + m.value.what() + " and has to be a string" + inQuotes(m.value)
		case len(m.value.text) > MaxString:
			return fmt.Sprintf("%s has more than %d bytes", jsonrpc.Show(m.name), MaxString)
		case hasKey(e.out.server.Headers, m.name):
			return jsonrpc.Show(m.name) + " stands twice"
		}
		e.out.server.Headers[m.name] = m.value.text
		e.lines["headers."+m.name] = e.line(m.offset)
	}
	return ""
}

func (e *entryReader) readOAuth(n node) string {
	switch n.kind {
	case '{':
		e.out.server.OAuth = true
	case 'f':
	default:
		return "is " + n.what() + " and has to be an object"
	}
	return ""
}

func (e *entryReader) readFilter(n node) string {
	if n.kind != '{' {
		return "is " + n.what() + " and has to be an object with include and exclude"
	}
	for _, m := range n.members {
		list, bad := m.value.strings(MaxPatterns)
		switch {
		case m.name != "include" && m.name != "exclude":
			return "has " + jsonrpc.Show(m.name) + ", and there are only include and exclude"
		case bad != "":
			return m.name + " " + bad
		case slices.Contains(list, ""):
			return m.name + " has an empty pattern, which no name matches"
		case m.name == "include" && e.out.server.Include != nil, m.name == "exclude" && e.out.server.Exclude != nil:
			return m.name + " stands twice"
		}
		if m.name == "include" {
			e.out.server.Include = list
		} else {
			e.out.server.Exclude = list
		}
	}
	return ""
}

func (e *entryReader) readIsolation(n node) string {
	s, bad := n.str()
	switch {
	case bad != "":
		return bad
	case s != "session" && s != "shared":
		return "is " + jsonrpc.Show(s) + " and has to be session or shared"
	}
	e.out.server.PerSession = s == "session"
	return ""
}

// modernVersion is the version of the era without a handshake.
const modernVersion = "2026-07-28"

// readVersion reads which era of the protocol a server is first spoken to in. Without it, that is found out, which costs a request.
func (e *entryReader) readVersion(n node) string {
	s, bad := n.str()
	switch {
	case bad != "":
		return bad
	case s != "auto" && s != modernVersion:
		return "is " + jsonrpc.Show(s) + " and has to be auto or " + modernVersion
	}
	e.out.server.Modern = s == modernVersion
	return ""
}

func (e *entryReader) readLogLevel(n node) string {
	s, bad := n.str()
	switch {
	case bad != "":
		return bad
	case !slices.Contains(logLevels, s):
		return "is " + jsonrpc.Show(s) + " and has to be one of " + strings.Join(logLevels, ", ")
	}
	e.out.server.LogLevel = s
	return ""
}

// logLevels are those of the protocol's logging/setLevel.
var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

func (e *entryReader) readRate(n node) string {
	v, bad := n.number()
	switch {
	case bad != "":
		return bad
	case v <= 0 || v > maxRate:
		return fmt.Sprintf("has to be more than 0 and at most %v", float64(maxRate))
	}
	e.out.server.Rate = v
	return ""
}
