package clientcheck

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// What a pod takes of one session by default.
const (
	maxServers     = 8
	maxTools       = 256
	maxSchemaBytes = 64 << 10
)

// judgeInitialize reads the params of initialize. bad is what a pod would refuse them with.
func judgeInitialize(params []byte) (in acp.Initialize, marks []mark, bad *jsonrpc.Error) {
	in, bad = acp.ParseInitialize(params)
	o, err := jsonrpc.ParseObject(params)
	if err != nil {
		return in, []mark{failed(rowInitialize, jsonrpc.Show(string(params)), "params must be an object")}, jsonrpc.BadParams("params must be an object")
	}
	version, _ := o.Get("protocolVersion")
	if n, sound := jsonrpc.Int(version); !sound || n < acp.ProtocolVersion || n > 65535 {
		marks = append(marks, failed(rowInitialize, "protocolVersion "+orAbsent(string(version)), "a pod answers -32602"))
	} else {
		marks = append(marks, passed(rowInitialize, "%d", n))
	}
	if why := selfDescription(o); why != "" {
		marks = append(marks, failed(rowCaps, jsonrpc.Show(in.ClientName), "%s", why))
	} else {
		marks = append(marks, passed(rowCaps, "%s", jsonrpc.Show(in.ClientName)))
	}
	return in, marks, bad
}

// selfDescription says what is wrong with what a client says of itself.
func selfDescription(o jsonrpc.Object) string {
	if raw, has := o.Get("clientCapabilities"); has && !jsonrpc.IsNull(raw) {
		caps, err := jsonrpc.ParseObject(raw)
		if err != nil {
			return "clientCapabilities is no object, so it offers nothing"
		}
		if why := kinds(caps, map[string]byte{"fs": '{', "terminal": 'b', "elicitation": '{', "_meta": '{'}); why != "" {
			return "clientCapabilities: " + why
		}
		if files, err := jsonrpc.ParseObject(get(caps, "fs")); err == nil {
			if why := kinds(files, map[string]byte{"readTextFile": 'b', "writeTextFile": 'b'}); why != "" {
				return "clientCapabilities.fs: " + why
			}
		}
	}
	if raw, has := o.Get("clientInfo"); has && !jsonrpc.IsNull(raw) {
		info, err := jsonrpc.ParseObject(raw)
		if err != nil {
			return "clientInfo is no object"
		}
		for _, name := range []string{"name", "version"} {
			if text, sound := jsonrpc.String(get(info, name)); !sound || text == "" {
				return "clientInfo." + name + " must be a string that is not empty"
			}
		}
	}
	meta, err := jsonrpc.ParseObject(get(o, "_meta"))
	if raw, has := meta.Get(acp.MetaClient); err == nil && has && !jsonrpc.IsNull(raw) {
		secret, sound := jsonrpc.String(raw)
		if n := utf8.RuneCountInString(secret); !sound || n < acp.MinClientSecret || n > acp.MaxClientSecret {
			return fmt.Sprintf("_meta[%q] must be a string of %d to %d characters: it is the client's secret", acp.MetaClient, acp.MinClientSecret, acp.MaxClientSecret)
		}
	}
	return ""
}

// kinds checks the members that are there: '{' an object, 'b' a boolean. null says that there is none.
func kinds(o jsonrpc.Object, want map[string]byte) string {
	for name, raw := range o.Members() {
		kind := want[name]
		_, isBool := jsonrpc.Bool(raw)
		if jsonrpc.IsNull(raw) || kind == 0 || kind == '{' && jsonrpc.IsObject(raw) || kind == 'b' && isBool {
			continue
		}
		return fmt.Sprintf("%s is %s", name, jsonrpc.Show(string(raw)))
	}
	return ""
}

func get(o jsonrpc.Object, name string) []byte {
	raw, _ := o.Get(name)
	return raw
}

// judgeNew reads the params of session/new. initial are the servers of initialize, nil when it had none.
func judgeNew(params, initial []byte) (declared []acp.Declared, marks []mark, bad *jsonrpc.Error) {
	p, bad := acp.ParseNew(params, initial)
	if bad != nil {
		return nil, []mark{failed(rowNew, jsonrpc.Show(string(params)), "%s", bad.Message)}, bad
	}
	for _, dir := range slices.Concat([]string{p.Cwd}, p.AdditionalDirectories) {
		if !path.IsAbs(dir) {
			bad = jsonrpc.BadParamsReason(jsonrpc.ReasonCwd, "not an absolute path")
			return nil, []mark{failed(rowNew, jsonrpc.Show(dir), "a pod takes absolute paths on its own machine; \"/\" stands for its agent's folder")}, bad
		}
	}
	marks = append(marks, passed(rowNew, "cwd %s", jsonrpc.Show(p.Cwd)))
	declared, more, bad := judgeServers(p.Servers)
	return declared, append(marks, more...), bad
}

// judgeServers reads an array of declarations.
func judgeServers(raw []byte) (declared []acp.Declared, marks []mark, bad *jsonrpc.Error) {
	declared, err := acp.ParseServers(raw)
	if err != nil {
		bad = jsonrpc.BadParams("%v", err)
		return nil, []mark{failed(rowServers, jsonrpc.Show(string(raw)), "%s", err)}, bad
	}
	served, beside := 0, 0
	for _, d := range declared {
		about := fmt.Sprintf("entry %d, %s", d.Index, jsonrpc.Show(d.Name))
		switch {
		case d.Verdict == acp.Ignored && (d.Form == acp.FormUnknown):
			marks = append(marks, failed(rowServers, about, "%s", d.Reason))
		case d.Verdict == acp.Ignored:
			beside++ // it may declare those: nothing comes of them
		case d.Verdict != acp.Connect:
			marks = append(marks, failed(rowServers, about, "%s", d.Reason))
		default:
			served++
		}
		if d.Tools != nil {
			marks = append(marks, judgeEarly(about, d.Tools))
		}
	}
	if bad = acp.CheckServers(declared, maxServers); bad != nil {
		marks = append(marks, failed(rowServers, fmt.Sprintf("%d servers", served), "%s", bad.Message))
	}
	came := fmt.Sprintf("%d to be served through the socket", served)
	if beside > 0 {
		came += fmt.Sprintf(", %d that are never started or dialled", beside)
	}
	return declared, append(marks, passed(rowServers, "%s", came)), bad
}

// judgeEarly judges the tools of a declaration.
func judgeEarly(about string, array []byte) mark {
	tools, broken, err := mcp.ParseTools(array, maxTools)
	switch {
	case err != nil:
		return failed(rowEarly, about, "%s", err)
	case len(broken) > 0:
		return failed(rowEarly, fmt.Sprintf("%s, tool %d %s", about, broken[0].Index, jsonrpc.Show(broken[0].Name)), "%s", broken[0].Why)
	}
	return passed(rowEarly, "%d tools", len(tools))
}

// generations are those that the declarations stand for, in words.
func generations(declared []acp.Declared) string {
	var names []string
	for _, d := range declared {
		name := map[acp.Form]string{acp.FormID: "A", acp.FormServerID: "B or C", acp.FormURL: "0"}[d.Form]
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
