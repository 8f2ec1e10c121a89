package config

import (
	"slices"
	"strings"
)

// openab are the names of the reference system that are accepted, and the keys that they stand for. An empty value is none.
var openab = []struct{ name, path string }{
	{"OPENAB_ACP_AUTH_KEY", "acp.auth_key"},
	{"OPENAB_ACP_ALLOWED_ORIGINS", "acp.allowed_origins"},
	{"OPENAB_ACP_TRACE", "acp.trace"},
	{"OPENAB_BROWSER_MODE", "agent.delivery"},
	{"OPENAB_BROWSER_SOCKET", "agent.bridge_socket"},
}

// browserModes translates the reference system's words for how an agent reaches a browser, where ours is another: "proxy" and "bridge" are
// ours as well, and of the ways to its facade the best for the agent at hand is found here.
var browserModes = map[string]string{"facade": "auto"}

// environment is a snapshot of the process's variables, so that one load sees one state.
type environment map[string]string

func newEnvironment(environ []string) environment {
	e := environment{}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			e[name] = value
		}
	}
	return e
}

func (e environment) lookup(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

// parseEnv reads the accepted OPENAB_ names, then every ACPOD_ name with a "__" in it. A name without one is no path into
// the configuration: container platforms set such names for a service called acpod (ACPOD_PORT, ACPOD_SERVICE_HOST), and
// they must not stop a start. One with "__" that leads nowhere is an error like any unknown key, and so is one that would be a key
// if its first "_" were two: that is a slip, and whoever made it believes that the key is set.
func parseEnv(e environment) (*layer, error) {
	l := newLayer(nil, e.lookup)
	for _, known := range openab {
		value := e[known.name]
		if value == "" {
			continue
		}
		if word, ok := browserModes[value]; ok && known.path == "agent.delivery" {
			value = word
		}
		l.set(Origin{Layer: FromEnv, Name: known.name}, known.path, value)
	}
	names := make([]string, 0, len(e))
	for name := range e {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		rest, ours := strings.CutPrefix(name, "ACPOD_")
		if !ours {
			continue
		}
		if !strings.Contains(rest, "__") {
			if meant, slip := slipOf(rest); slip {
				l.errs = append(l.errs, &Error{At: Origin{Layer: FromEnv, Name: name}, Problem: "is no key; did you mean " + meant + "?", Allowed: `ACPOD_ and the path in upper case with "__" between levels`})
			}
			continue
		}
		parts := strings.Split(rest, "__")
		k := schema
		for i := range parts {
			if k.kind == kindStringMap {
				parts[i] = strings.Join(parts[i:], "__") // the name inside agent.env keeps its case
				parts = parts[:i+1]
				break
			}
			parts[i] = strings.ToLower(parts[i])
			if next := k.field(parts[i]); next != nil {
				k = next
			}
		}
		l.set(Origin{Layer: FromEnv, Name: name}, strings.Join(parts, "."), e[name])
	}
	return l, firstOf(l.errs)
}

// slipOf finds the variable that was meant by a name with one "_" between section and key.
func slipOf(rest string) (meant string, slip bool) {
	section, name, _ := strings.Cut(rest, "_")
	k := schema.field(strings.ToLower(section))
	if k == nil || k.field(strings.ToLower(name)) == nil {
		return "", false
	}
	return "ACPOD_" + section + "__" + name, true
}

// parseFlags reads KEY=VALUE pairs, as the command line gives them.
func parseFlags(pairs []Setting) (*layer, error) {
	l := newLayer(nil, nil)
	for _, pair := range pairs {
		l.set(Origin{Layer: FromFlag, Name: pair.Flag}, pair.Key, pair.Value)
	}
	return l, firstOf(l.errs)
}

// set puts one textual value at its place.
func (l *layer) set(from Origin, path, text string) {
	l.at = func(string) Origin { return from }
	k, values, rest := schema, l.values, path
	for {
		var name string
		name, rest, _ = strings.Cut(rest, ".")
		if k.kind == kindStringMap {
			if rest != "" {
				name += "." + rest
			}
			if !isEnvName(name) {
				l.fail(path, "is no name", "names that are not empty and have no = in them")
				return
			}
			values[name], l.origins[path] = text, from
			return
		}
		next := k.field(name)
		if next == nil {
			l.fail(path, "unknown key", k.allowed())
			return
		}
		k = next
		if rest == "" {
			break
		}
		if k.kind != kindSection && k.kind != kindStringMap {
			l.fail(path, "unknown key: "+name+" has no parts that can be set here", k.allowed())
			return
		}
		inner, ok := values[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			values[name] = inner
		}
		values = inner
	}
	if k.kind == kindSection || k.kind == kindStringMap {
		l.fail(path, "is a section and has no value of its own", k.allowed())
		return
	}
	v, ok := l.text(k, path, text)
	if !ok {
		return
	}
	if k.seconds != nil {
		k, v = k.seconds, secondsOf(v)
		path = path[:strings.LastIndexByte(path, '.')+1] + k.name
	}
	values[k.name], l.origins[path] = v, from
}

// firstOf keeps the order of the errors: variables and flags have no lines.
func firstOf(errs []*Error) error {
	if len(errs) == 0 {
		return nil
	}
	one := *errs[0]
	one.More = len(errs) - 1
	return &one
}
