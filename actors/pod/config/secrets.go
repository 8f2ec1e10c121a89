package config

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Secrets are the keys as they have to be presented, read from their files.
type Secrets struct {
	ACP   []NamedKey // acp.auth_key without a name, then acp.keys with theirs; empty = /acp is keyless
	MCP   string     // mcp.auth_key_file
	Debug string     // debug.auth_key
}

// NamedKey is one key of /acp. A session belongs to the name.
type NamedKey struct{ Name, Key string }

// maxKey bounds a key file. It is what fits a header line of any server.
const maxKey = 4096

func (l *Loaded) readSecrets(readFile func(string) ([]byte, error)) (Secrets, error) {
	var out Secrets
	key, err := l.secret(readFile, "acp.auth_key", l.ACP.AuthKey, "acp.auth_key_file", l.ACP.AuthKeyFile)
	if err != nil {
		return out, err
	}
	if key != "" {
		out.ACP = append(out.ACP, NamedKey{"", key})
	}
	at := l.Origin("acp.keys")
	seen := map[string]string{key: "acp.auth_key"}
	names := map[string]bool{}
	for i, k := range l.ACP.Keys {
		path := fmt.Sprintf("acp.keys[%d]", i)
		l.Origins[path+".key"], l.Origins[path+".key_file"] = l.originOr(path+".key", at), l.originOr(path+".key_file", at)
		key, err := l.secret(readFile, path+".key", k.Key, path+".key_file", k.KeyFile)
		switch {
		case err != nil:
			return out, err
		case key == "":
			return out, &Error{At: l.originOr(path+".name", at), Key: path, Problem: "has neither key nor key_file", Allowed: "one of the two"}
		case names[k.Name]:
			return out, &Error{At: l.originOr(path+".name", at), Key: path + ".name", Problem: quote(k.Name) + " is taken", Allowed: "each name once, since sessions belong to it"}
		case seen[key] != "":
			return out, &Error{At: l.originOr(path+".name", at), Key: path, Problem: "is the same key as " + seen[key], Allowed: "a key of its own, since sessions belong to keys"}
		}
		seen[key], names[k.Name] = path, true
		out.ACP = append(out.ACP, NamedKey{k.Name, key})
	}
	if l.MCP != nil {
		if out.MCP, err = l.secret(readFile, "", "", "mcp.auth_key_file", l.MCP.AuthKeyFile); err != nil {
			return out, err
		}
	}
	out.Debug, err = l.secret(readFile, "debug.auth_key", l.Debug.AuthKey, "", "")
	return out, err
}

func (l *Loaded) originOr(path string, otherwise Origin) Origin {
	if o, ok := l.Origins[path]; ok {
		return o
	}
	return otherwise
}

// secret is the key that stands in the configuration or in a file. An empty string is no key; one of only spaces, and a
// file without one, is a mistake that must not open a door.
func (l *Loaded) secret(readFile func(string) ([]byte, error), keyPath, key, filePath, file string) (string, error) {
	switch {
	case key != "" && file != "":
		return "", &Error{At: l.Origin(filePath), Key: filePath, Problem: "stands beside " + keyPath, Allowed: "one of the two"}
	case key != "" && strings.TrimSpace(key) == "":
		return "", &Error{At: l.Origin(keyPath), Key: keyPath, Problem: "is only spaces", Allowed: `a key, or "" for none`}
	case key != "":
		return key, l.usable(keyPath, key)
	case file == "":
		return "", nil
	}
	text, err := readFile(file)
	if err != nil {
		return "", &Error{At: l.Origin(filePath), Key: filePath, Problem: quote(file) + " cannot be read: " + reason(err), Allowed: "a readable file with the key in it"}
	}
	key = string(bytes.TrimSpace(text))
	if key == "" {
		return "", &Error{At: l.Origin(filePath), Key: filePath, Problem: quote(file) + " is empty", Allowed: "a file with the key in it"}
	}
	return key, l.usable(filePath, key)
}

// usable refuses what no client could ever send in a header.
func (l *Loaded) usable(path, key string) error {
	if len(key) > maxKey || !utf8.ValidString(key) || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return &Error{At: l.Origin(path), Key: path, Problem: "cannot be sent in a header", Allowed: "one line of at most 4096 bytes without control characters"}
	}
	return nil
}
