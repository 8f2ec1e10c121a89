package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/chaos/pod"
)

// A pod that is broken in one way is named in that way: the row that is about it fails, and hardly another.
func TestWireCheckNamesWhatIsBroken(t *testing.T) {
	t.Parallel()
	const smaller = "[limits]\nrequest_bytes = \"128KiB\"\nframe_bytes = \"1MiB\"\nresult_bytes = \"1MiB\"\n" // so that twenty runs are not mostly the carrying of 8 MiB
	none := startPod(t, checked(noAgent, grantsTwo)+smaller)
	large := startPod(t, checked(noAgent, grantsTwo))
	demo := startPod(t, checked("", grantsTwo)+smaller)
	keyed := startPod(t, strings.Replace(checked(noAgent, grantsTwo), "[acp]", "[acp]\nauth_key = \"the.key-1\"", 1)+smaller)
	replace := func(old, new string) func(*link, []byte) [][]byte {
		return func(_ *link, message []byte) [][]byte {
			return [][]byte{bytes.ReplaceAll(message, []byte(old), []byte(new))}
		}
	}
	drop := func(method string) func(*link, []byte) [][]byte {
		return func(_ *link, message []byte) [][]byte {
			if bytes.Contains(message, []byte(`"method":"`+method+`"`)) {
				return nil
			}
			return [][]byte{message}
		}
	}
	const frameLimit, requestLimit = 8 << 20, 1 << 20
	for _, row := range []struct {
		name      string
		pod       *pod.Pod
		how       broken
		names     []string // these rows fail
		also      []string // parts of the names of rows that may fail with them
		arguments []string
	}{
		{
			"swaps the answers of two open requests", none, broken{toPod: func(l *link, m []byte) [][]byte { return l.swapPipelined(m) }},
			[]string{"compliance/two open requests each get the answer to their own id"}, nil, nil,
		},
		{
			"writes an id in its own way", none, broken{toClient: replace(`"id":"a\/b"`, `"id":"a/b"`)},
			[]string{"compliance/an id comes back as it came"}, nil, []string{"--sections", "compliance,edges"},
		},
		{
			"ends a turn before its last chunk", demo, broken{toClient: func(l *link, message []byte) [][]byte {
				l.mu.Lock()
				defer l.mu.Unlock()
				held := l.held
				switch {
				case bytes.Contains(message, []byte("echo: the last words")):
					l.held = message
					return nil
				case held != nil && bytes.Contains(message, []byte(`"stopReason"`)):
					l.held = nil
					return [][]byte{message, held}
				}
				return [][]byte{message}
			}},
			[]string{"compliance/the answer to a prompt comes after every update of its turn"}, nil, []string{"--sections", "compliance,lifecycle"},
		},
		{
			"lets a wrong key in", keyed, broken{handshake: func(request string) string {
				return strings.Replace(request, "wire-check-this-is-not-the-key", "the.key-1", 1)
			}},
			[]string{
				"auth/a wrong key in Authorization is refused", "auth/a wrong key in Authorization is refused, whatever the subprotocol says",
				"auth/a wrong key in a subprotocol is told on the socket",
			},
			nil, []string{"--key-file", keyFile(t, "the.key-1"), "--sections", "auth,compliance", "--patience", "10s"},
		},
		{
			"lets a page from elsewhere in", none, broken{handshake: func(request string) string {
				return strings.Replace(request, "Origin: https://wire-check.invalid\r\n", "", 1)
			}},
			[]string{"auth/a page from elsewhere is refused"}, nil, []string{"--sections", "auth,compliance"},
		},
		{
			"answers a frame that is too large", large, broken{toPod: func(l *link, message []byte) [][]byte {
				if len(message) <= frameLimit {
					return [][]byte{message}
				}
				l.tell(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"too large"}}`)
				return nil
			}},
			[]string{"lifecycle/a frame over frame_bytes closes the connection", "lifecycle/a request over frame_bytes is not answered either"}, nil, []string{"--sections", "edges,lifecycle"},
		},
		{
			"closes the connection on a request that is too large", large, broken{toPod: func(l *link, message []byte) [][]byte {
				if len(message) > requestLimit && len(message) <= frameLimit && bytes.Contains(message[:200], []byte(`"method"`)) && idOf(message[:200]) != nil {
					l.hangUp(1009)
					return nil
				}
				return [][]byte{message}
			}},
			[]string{"lifecycle/a request over request_bytes is refused, and the connection lives"}, nil, []string{"--sections", "edges,lifecycle"},
		},
		{
			"takes requests of any size", large, broken{toPod: func(_ *link, message []byte) [][]byte { // what the pod would refuse, it gets as if it were shorter
				if id := idOf(message[:min(len(message), 200)]); len(message) > requestLimit && id != nil && bytes.Contains(message[:200], []byte(`"method"`)) && len(message) <= frameLimit {
					return [][]byte{fmt.Appendf(nil, `{"jsonrpc":"2.0",%s,"method":"_wirecheck/ping"}`, id)}
				}
				return [][]byte{message}
			}},
			[]string{"lifecycle/a request over request_bytes is refused, and the connection lives"}, nil, []string{"--sections", "edges,lifecycle"},
		},
		{
			"connects a server twice", none, broken{
				toClient: func(l *link, message []byte) [][]byte {
					if !bytes.Contains(message, []byte(`"method":"mcp/connect","params":{"serverId"`)) {
						return [][]byte{message}
					}
					l.mu.Lock()
					defer l.mu.Unlock()
					l.swallow[`"id":987654`] = true
					return [][]byte{message, bytes.Replace(message, idOf(message), []byte(`"id":987654`), 1)}
				},
				toPod: func(l *link, message []byte) [][]byte {
					l.mu.Lock()
					defer l.mu.Unlock()
					if l.swallow[string(idOf(message))] {
						return nil
					}
					return [][]byte{message}
				},
			},
			[]string{"tunnel/B: a declared server is connected and listed", "tunnel/C: a declared server is connected and listed"}, []string{"B: the end of the session ends its connection"}, []string{"--sections", "compliance,tunnel"},
		},
		{
			"never disconnects", none, broken{toClient: drop("mcp/disconnect")},
			[]string{"tunnel/A: the end of the session ends its connection", "tunnel/B: the end of the session ends its connection"},
			[]string{"a server that a resume leaves out is disconnected once", "a session that moves to another connection takes its servers along"},
			[]string{"--sections", "tunnel", "--patience", "15s"}, // which each of these rows waits for
		},
		{
			"keeps a cancel from the server", none, broken{toClient: drop("$/cancel_request")},
			[]string{"tunnel/A: a cancel reaches the server", "tunnel/B: a cancel reaches the server", "tunnel/C: a cancel reaches the server", "tunnel/0: a cancel reaches the server"}, nil,
			[]string{"--sections", "tunnel", "--patience", "15s"},
		},
		{
			"answers end_turn after a cancel", demo, broken{toClient: replace(`"stopReason":"cancelled"`, `"stopReason":"end_turn"`)},
			[]string{"lifecycle/a cancel in the frame after its prompt cancels it", "lifecycle/a cancel in the middle of a turn ends it"}, []string{"an agent that does not end its turn is cut off"}, []string{"--sections", "compliance,lifecycle"},
		},
		{
			"says -32600 of what is no JSON", none, broken{toClient: replace(`"code":-32700`, `"code":-32600`)},
			[]string{"edges/what is no JSON is said to be none", "edges/what is nested deeper than 10,000 is no JSON"}, nil, []string{"--sections", "compliance,edges,lifecycle"},
		},
		{
			"loses the joiners of emoji", demo, broken{toClient: func(_ *link, message []byte) [][]byte {
				if !bytes.Contains(message, []byte("agent_message_chunk")) {
					return [][]byte{message}
				}
				return [][]byte{bytes.ReplaceAll(message, []byte("\u200d"), nil)}
			}},
			[]string{"edges/text of all scripts arrives as it was sent"}, nil, []string{"--sections", "compliance,edges"},
		},
		{
			"reads and writes again what it carries", none, broken{toPod: func(_ *link, message []byte) [][]byte {
				if !bytes.Contains(message, []byte(`"content"`)) {
					return [][]byte{message}
				}
				var whole map[string]any
				reader := json.NewDecoder(bytes.NewReader(message))
				reader.UseNumber()
				if reader.Decode(&whole) != nil {
					return [][]byte{message}
				}
				again, err := json.Marshal(whole)
				if err != nil {
					return [][]byte{message}
				}
				return [][]byte{again}
			}},
			[]string{"tunnel/a result passes to the byte"}, nil, []string{"--sections", "edges,tunnel"},
		},
		{
			"drops members that it does not know", none, broken{toPod: func(_ *link, message []byte) [][]byte {
				return [][]byte{bytes.Replace(message, []byte(`,"x":[1.0,-0]`), nil, 1)}
			}},
			[]string{"tunnel/a result passes to the byte"}, nil, []string{"--sections", "edges,tunnel"},
		},
		{
			"alters the result of a tool", none, broken{toPod: replace(`{\"selector\":\"#bump\"}`, `{\"selector\":\"#dump\"}`)},
			[]string{"tunnel/A: its tools are found and called", "tunnel/B: its tools are found and called", "tunnel/C: its tools are found and called", "tunnel/0: its tools are found and called"}, nil, []string{"--sections", "lifecycle,tunnel"},
		},
		{
			"answers a notification", none, broken{toPod: func(l *link, message []byte) [][]byte {
				if bytes.Contains(message, []byte(`"method":"wirecheck/unknown"`)) && idOf(message) == nil {
					l.tell(`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"unknown"}}`)
				}
				return [][]byte{message}
			}},
			[]string{"edges/a notification is never answered"}, nil, []string{"--sections", "compliance,edges"},
		},
		{
			"answers a request twice", none, broken{toClient: func(_ *link, message []byte) [][]byte {
				if bytes.Contains(message, []byte(`"sessions":[`)) {
					return [][]byte{message, message}
				}
				return [][]byte{message}
			}},
			[]string{"compliance/session/list has what this connection opened, until it is closed"}, []string{"two open requests each get the answer to their own id", "a notification is never answered"}, nil,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			limits := []string{"--servers", "a,b", "--patience", "1m"}
			if row.pod != large {
				limits = append(limits, "--frame-bytes", fmt.Sprint(1<<20))
			}
			code, r := checkWire(t, breakPod(t, row.pod.Public(), row.how), append(limits, row.arguments...)...)
			if code != 2 {
				t.Errorf("exit %d", code)
			}
			for _, name := range row.names {
				if !slices.Contains(r.failed, name) {
					t.Errorf("%q is not named", name)
				}
			}
			for _, name := range r.failed {
				if !slices.Contains(row.names, name) && !slices.ContainsFunc(row.also, func(part string) bool { return strings.Contains(name, part) }) {
					t.Errorf("%q failed too", name)
				}
			}
			if t.Failed() {
				t.Log(r.explain())
			}
		})
	}
}
