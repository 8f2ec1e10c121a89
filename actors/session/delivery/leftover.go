package delivery

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"
)

// directName is the server under which earlier systems led an agent to a browser directly, past every policy; directGrant let an
// agent of Kiro's use it without a question.
const (
	directName  = "openab-browser"
	directGrant = "@" + directName
)

const (
	cursorServers = ".cursor/mcp.json"
	kiroServers   = ".kiro/settings/mcp.json"
	kiroAgents    = ".kiro/agents/*.json"
)

// Leftover is an entry of an agent's configuration that leads around the pod's policy, or could.
type Leftover struct {
	Path string // of the file, below agent.workdir
	Why  string // it is not removed; "" = it is ours, and is removed, or would be
}

// provable tells whether an entry is one that earlier systems wrote, and nobody else: their bridge, or their proxy, whose address and
// key died with them. Anything else, with so much as a further member, may be an operator's.
func provable(value any) bool {
	entry, ok := value.(map[string]any)
	if !ok || len(entry) != 2 {
		return false
	}
	if entry["command"] == "openab" {
		args, ok := entry["args"].([]any)
		return ok && len(args) == 1 && args[0] == "browser-bridge"
	}
	address, ok := entry["url"].(string)
	headers, ok2 := entry["headers"].(map[string]any)
	if !ok || !ok2 || len(headers) != 1 || !loopback(address) {
		return false
	}
	bearer, ok := headers["Authorization"].(string)
	return ok && uuidBearer.MatchString(bearer)
}

var uuidBearer = regexp.MustCompile(`^Bearer [0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)

// loopback tells whether an address leads to this machine, with a port, and to nothing else by any trick.
func loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.User != nil || u.Port() == "" || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	if u.Hostname() == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback()
}

// leftovers looks in all places below those folders, which are relative to f, and takes out what is provably ours when it may change
// something. What s has seen is not looked at.
func leftovers(ctx context.Context, f *folder, folders []string, change bool, s *seen) (list []Leftover) {
	for _, dir := range folders {
		cursor, _ := direct(ctx, f, path.Join(dir, cursorServers), change, s)
		list = append(list, cursor...)
		files := []string{path.Join(dir, kiroServers)}
		agents, err := f.matches(path.Join(dir, kiroAgents))
		if err != nil && !errors.Is(err, syscall.ENOTDIR) {
			agents = nil
			list = append(list, unseen(f, path.Join(dir, path.Dir(kiroAgents)), err)...)
		}
		kept := false
		for _, name := range append(files, agents...) {
			some, foreign := direct(ctx, f, name, change, s)
			list, kept = append(list, some...), kept || foreign
		}
		if kept { // the grant may be for what is kept
			continue
		}
		for _, name := range agents {
			list = append(list, ungrant(ctx, f, name, change, s)...)
		}
	}
	return list
}

// direct looks for the entry in one file. foreign: there is one that stays.
func direct(ctx context.Context, f *folder, name string, change bool, s *seen) (list []Leftover, foreign bool) {
	if s.has(f, name, hasNoServer) {
		return nil, false
	}
	is := ""
	_, err := f.edit(ctx, name, func(was found) ([]byte, error) {
		var text []byte
		if text, is = withoutDirect(was.text); is == ours && change {
			return text, nil
		}
		switch {
		case !mentions(was.text):
			s.add(f, name, was.info, hasNoServer|hasNoGrant)
		case is == "":
			s.add(f, name, was.info, hasNoServer)
		}
		return nil, nil
	})
	switch {
	case err != nil && is == ours:
		return []Leftover{{name, "it cannot be removed: " + err.Error()}}, true
	case err != nil:
		list = unseen(f, name, err)
		return list, len(list) > 0
	case is == "":
		return nil, false
	case is == ours:
		return []Leftover{{Path: name}}, false
	}
	return []Leftover{{name, is}}, true
}

const ours = "ours"

// withoutDirect judges the entry of a file's text: "" = there is none, ours, with the text less it, or why it is kept.
func withoutDirect(text []byte) (rest []byte, is string) {
	if !mentions(text) {
		return nil, ""
	}
	doc, err := read(false, text)
	if err != nil {
		if named(text) {
			return nil, "it names the server " + directName + " and cannot be read"
		}
		return nil, ""
	}
	value, found, err := doc.entry("mcpServers", directName)
	switch {
	case err != nil:
		return nil, err.Error()
	case !found:
		return nil, ""
	case !provable(value):
		return nil, "its server " + directName + " is not one that was written by this system"
	}
	c, err := doc.remove("mcpServers", directName)
	if err == nil {
		rest, err = changed(false, text, doc, c, "mcpServers", directName)
	}
	if err != nil {
		return nil, "it cannot be removed: " + err.Error()
	}
	return rest, ours
}

// mentions tells whether a text can have the name at all, of the server or of its grant: there is no other way to write its letters.
func mentions(text []byte) bool {
	return bytes.Contains(text, []byte("openab")) || bytes.Contains(text, []byte(`\u`))
}

// named tells whether a text has the server's name somewhere, as it is or in escapes of JSON: its agent may read what we cannot.
func named(text []byte) bool {
	plain := escape.ReplaceAllFunc(text, func(e []byte) []byte {
		n, _ := strconv.ParseUint(string(e[2:]), 16, 16)
		return utf8.AppendRune(nil, rune(n))
	})
	return bytes.Contains(plain, []byte(directName))
}

var escape = regexp.MustCompile(`\\u[0-9a-fA-F]{4}`)

// ungrant takes the grant out of a file of a Kiro agent.
func ungrant(ctx context.Context, f *folder, name string, change bool, s *seen) []Leftover {
	if s.has(f, name, hasNoGrant) {
		return nil
	}
	granted := false
	_, err := f.edit(ctx, name, func(was found) ([]byte, error) {
		text := was.text
		granted = false
		for mentions(text) {
			doc, err := read(false, text)
			has := false
			if err == nil { // else its agent cannot read it either
				has, err = doc.granted("allowedTools", directGrant)
			}
			if err != nil || !has {
				break
			}
			granted = true
			c, err := doc.revoke("allowedTools", directGrant)
			if err == nil {
				text, err = changed(false, text, doc, c, "allowedTools", directGrant)
			}
			if err != nil {
				return nil, err
			}
		}
		if !granted {
			s.add(f, name, was.info, hasNoGrant)
		}
		if !granted || !change {
			return nil, nil
		}
		return text, nil
	})
	switch {
	case !granted:
		return nil
	case err != nil:
		return []Leftover{{name, "its grant " + directGrant + " cannot be removed: " + err.Error()}}
	}
	return []Leftover{{Path: name}}
}

// unseen is about a place that cannot be looked at as all others are. Behind a link that leads out it is looked at, and never changed.
func unseen(f *folder, name string, err error) []Leftover {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, errNoFile):
		return nil // no agent reads anything there
	case errors.Is(err, errLinkOut):
		full := filepath.Join(f.path, filepath.FromSlash(name))
		info, failed := os.Stat(full)
		if failed != nil {
			return nil
		}
		if info.IsDir() {
			return unseenFolder(full, name)
		}
		file, failed := os.OpenFile(full, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if failed != nil {
			return nil
		}
		defer file.Close()
		_, text, failed := slurp(file)
		if failed == nil && !named(text) || errors.Is(failed, errNoFile) {
			return nil
		}
		return []Leftover{{name, "it names the server " + directName + " and " + err.Error()}}
	}
	return []Leftover{{name, "it cannot be looked at: " + err.Error()}}
}

// unseenFolder looks at the agents' files of a folder behind a link.
func unseenFolder(full, name string) (list []Leftover) {
	files, err := filepath.Glob(filepath.Join(strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`).Replace(full), "*.json"))
	if err != nil {
		return nil
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(filepath.Base(file), ".") {
			continue
		}
		if info.Size() > fileBytes {
			list = append(list, Leftover{path.Join(name, filepath.Base(file)), "it cannot be looked at: " + errTooLarge.Error()})
		} else if text, err := os.ReadFile(file); err == nil && named(text) {
			list = append(list, Leftover{path.Join(name, filepath.Base(file)), "it names the server " + directName + " and " + errLinkOut.Error()})
		}
	}
	return list
}
