package mcpjson

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// Resolved is everything that is needed to start or dial a server, with all variables replaced.
type Resolved struct {
	Name    string
	Kind    Kind
	Command string // stdio
	Args    []string
	Env     map[string]string // what the entry sets, beside what every child gets
	Dir     string            // "" = the pod's
	URL     string            // HTTP and SSE: absolute, http or https, no user, no fragment
	Headers map[string]string // as written; each can be sent
	// Secrets must not be shown: values that came from variables, values of env and of headers, values in the query of the
	// URL. The longest first, so that who replaces them in this order leaves no rest of one.
	Secrets []string
	Hash    [32]byte // of all of the above: another one is another configuration, or other credentials
}

// Resolve puts values in the place of variables and checks what came out. Its error is a *[FieldError]: the server cannot be used as things are,
// and no other is concerned. env is asked for each variable; os.LookupEnv is one.
func (s *Server) Resolve(env func(string) (string, bool)) (Resolved, error) {
	r := resolver{server: s, env: env, out: Resolved{Name: s.Name, Kind: s.Kind}}
	if s.Kind == Stdio {
		r.process()
	} else {
		r.address()
	}
	if r.err != nil {
		return Resolved{}, r.err
	}
	r.out.Secrets = r.secrets.list()
	r.out.Hash = r.out.hash()
	return r.out, nil
}

// resolver resolves one entry; the first fault is kept.
type resolver struct {
	server  *Server
	env     func(string) (string, bool)
	out     Resolved
	secrets secretSet
	err     error
}

func (r *resolver) fail(field, variable, format string, args ...any) {
	if r.err == nil {
		where := field
		if at := strings.IndexByte(field, '['); at >= 0 {
			where = field[:at]
		}
		line := r.server.lineOf(field)
		if line == r.server.Line {
			line = r.server.lineOf(where)
		}
		r.err = &FieldError{File: r.server.File, Line: line, Server: r.server.Name, Field: field, Variable: variable, Text: fmt.Sprintf(format, args...)}
	}
}

// text resolves one string.
func (r *resolver) text(field, s string) string {
	out, used, unset, bad := expand(s, r.env)
	if bad != "" {
		r.fail(field, unset, "%s", bad)
		return ""
	}
	if strings.ContainsRune(out, 0) {
		r.fail(field, "", "holds a NUL, which cannot be passed on")
		return ""
	}
	for _, v := range used {
		if !isPublic(v.name) {
			r.secrets.add(v.value)
		}
	}
	return out
}

func (r *resolver) process() {
	s := r.server
	r.out.Command = r.text("command", s.Command)
	if r.err == nil && strings.TrimSpace(r.out.Command) == "" {
		r.fail("command", "", "is empty once its variables are replaced")
	}
	r.out.Args = make([]string, 0, len(s.Args))
	for i, arg := range s.Args {
		r.out.Args = append(r.out.Args, r.text(fmt.Sprintf("args[%d]", i), arg))
	}
	r.out.Env = make(map[string]string, len(s.Env))
	for _, name := range sortedKeys(s.Env) {
		value := r.text("env."+name, s.Env[name])
		r.out.Env[name] = value
		if !isPublic(name) {
			r.secrets.add(value)
		}
	}
	r.out.Dir = r.text("cwd", s.Dir)
	if rest, home := strings.CutPrefix(r.out.Dir, "~/"); home {
		if dir, ok := r.env("HOME"); ok && dir != "" {
			r.out.Dir = filepath.Join(dir, rest)
		}
	}
}

func (r *resolver) address() {
	s := r.server
	r.out.URL = r.url(r.text("url", s.URL))
	r.out.Headers = make(map[string]string, len(s.Headers))
	for _, name := range sortedKeys(s.Headers) {
		r.out.Headers[name] = r.header(name, s.Headers[name])
	}
}

// url is the address as it is dialled. What is wrong with it is told without a part of it: it may hold a key.
func (r *resolver) url(text string) string {
	if r.err != nil {
		return ""
	}
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		r.fail("url", "", "is no URL; write https://HOST/PATH")
	case u.Scheme != "http" && u.Scheme != "https":
		r.fail("url", "", "has to begin with https:// or http://")
	case u.User != nil:
		r.fail("url", "", "holds a user or a password, which a log may show; write them as a header")
	default:
		for _, values := range u.Query() {
			for _, v := range values {
				r.secrets.add(v)
			}
		}
		u.Fragment, u.RawFragment = "", ""
		return u.String()
	}
	return ""
}

// header is one value as it is sent. None is ever shown, so the fault is told in words alone.
func (r *resolver) header(name, written string) string {
	field := "headers." + name
	out, used, unset, bad := expand(written, r.env)
	if bad != "" {
		r.fail(field, unset, "%s", bad)
		return ""
	}
	value := strings.Trim(out, " \t")
	scheme, credentials, _ := strings.Cut(value, " ")
	switch {
	case strings.ContainsFunc(out, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
		r.fail(field, "", "has a CR, LF, NUL or another control character in its value, which cannot be sent")
	case value == "" && written != "":
		r.fail(field, firstReference(written), "is empty once its variables are replaced")
	case strings.EqualFold(name, "authorization") && (value == "" || isScheme(scheme) && strings.TrimSpace(credentials) == ""):
		r.fail(field, firstReference(written), "has no credentials once its variables are replaced")
	}
	r.secrets.add(value)
	if credentials = strings.TrimSpace(credentials); isScheme(scheme) {
		r.secrets.add(credentials)
	}
	for _, v := range used {
		r.secrets.add(v.value)
	}
	return value
}

// isScheme tells the word before credentials from credentials that are one word.
func isScheme(s string) bool {
	return strings.EqualFold(s, "bearer") || strings.EqualFold(s, "basic") || strings.EqualFold(s, "token") || strings.EqualFold(s, "digest") ||
		strings.EqualFold(s, "apikey")
}

// firstReference is the name of the first variable of a text; "" when there is none.
func firstReference(s string) string {
	_, rest, ok := strings.Cut(s, "${")
	if !ok {
		return ""
	}
	inner, _, _ := strings.Cut(rest, "}")
	name, _, _ := strings.Cut(strings.TrimPrefix(inner, "env:"), ":-")
	if !isVariable(name) {
		return ""
	}
	return name
}
