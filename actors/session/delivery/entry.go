package delivery

import (
	"strings"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// BridgeCommand is how an agent starts its end of the bridge. The zero value: there is none.
type BridgeCommand struct {
	Program string // this executable, absolute
	Socket  string // the pod's, absolute
}

func (b BridgeCommand) arguments() []string { return []string{"bridge"} }

// httpEntry is the facade in the mcpServers of session/new. The token is written literally, or as the variable for an agent that reads that.
func (p *Profile) httpEntry(url, token string) []byte {
	bearer := token
	if p.Expands {
		bearer = "${" + TokenVariable + "}"
	}
	return append(acp.HTTPServer([]byte("["), EntryName, url, "Bearer "+bearer), ']')
}

// stdioEntry is the bridge in the mcpServers of session/new. It holds no token: whose it is, its process says.
func (b BridgeCommand) stdioEntry() []byte {
	dst := jsonrpc.AppendString([]byte(`[{"name":`), EntryName)
	dst = jsonrpc.AppendString(append(dst, `,"command":`...), b.Program)
	dst = append(appendStrings(append(dst, `,"args":`...), b.arguments()), `,"env":[{"name":`...)
	dst = jsonrpc.AppendString(dst, SocketVariable)
	dst = jsonrpc.AppendString(append(dst, `,"value":`...), b.Socket)
	return append(dst, "}]}]"...)
}

func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonrpc.AppendString(dst, s)
	}
	return append(dst, ']')
}

// pair is a member of an entry: its value is JSON, and so far as it is used here, TOML too.
type pair struct{ name, value string }

func text(s string) string { return string(jsonrpc.AppendString(nil, s)) }

// http is the entry of a server at url, in the syntax of that file. Where the token is to stand, it names the variable.
func (f *Place) http(url string) []pair {
	list := further(f.Remote)
	list = append(list, pair{f.URLKey, text(url)})
	if f.TokenKey != "" {
		return append(list, pair{f.TokenKey, text(TokenVariable)})
	}
	return append(list, pair{"headers", `{"Authorization":` + text("Bearer "+f.Variable) + `}`})
}

// stdio is the entry of the bridge, in the syntax of that file.
func (f *Place) stdio(b BridgeCommand) []pair {
	list, environment := further(f.Local), pair{"env", `{` + text(SocketVariable) + `:` + text(b.Socket) + `}`}
	if f.TOML {
		environment.value = `{` + SocketVariable + ` = ` + text(b.Socket) + `}`
	}
	if f.Argv {
		environment.name = "environment"
		return append(list, pair{"command", string(appendStrings(nil, append([]string{b.Program}, b.arguments()...)))}, environment)
	}
	return append(list, pair{"command", text(b.Program)}, pair{"args", string(appendStrings(nil, b.arguments()))}, environment)
}

// further reads the members that a profile adds: `"type":"http"`.
func further(members string) []pair {
	if members == "" {
		return nil
	}
	name, value, _ := strings.Cut(members, ":")
	return []pair{{strings.Trim(name, `"`), value}}
}

// object is an entry as JSON.
func object(entry []pair) string {
	dst := []byte{'{'}
	for i, p := range entry {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(jsonrpc.AppendString(dst, p.name), ':'), p.value...)
	}
	return string(append(dst, '}'))
}
