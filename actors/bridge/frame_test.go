package bridge

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

const (
	sessionID = "sess_0b6bd4be-6f5a-4a4e-9d1b-3a4b5c6d7e8f"
	ping      = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
)

func TestAFrameMayNameTheChannelItIsIn(t *testing.T) {
	const id, other = "0b6bd4be-6f5a-4a4e-9d1b-3a4b5c6d7e8f", "1b6bd4be-6f5a-4a4e-9d1b-3a4b5c6d7e8f"
	for line, want := range map[string]struct {
		message string
		why     reason
	}{
		ping: {ping, ""},
		`{"channel_id":"sess_` + id + `","request":` + ping + `}`:                                  {ping, ""},
		`{"channel_id":"acp_` + id + `","request":` + ping + `}`:                                   {ping, ""},
		`{"channel_id":"acp:acp_` + id + `","request":` + ping + `}`:                               {ping, ""},
		`{"request":` + ping + `}`:                                                                 {ping, ""},
		`{"channel_id":"acp_` + other + `","request":` + ping + `}`:                                {"", otherChannel},
		`{"channel_id":"","request":` + ping + `}`:                                                 {"", otherChannel},
		`{"channel_id":null,"request":` + ping + `}`:                                               {"", otherChannel},
		`{"channel_id":["sess_` + id + `"],"request":` + ping + `}`:                                {"", otherChannel},
		`{"channel_id":"acp_` + other + `","channel_id":"sess_` + id + `","request":` + ping + `}`: {"", otherChannel},
		`{"request":{"channel_id":"acp_` + other + `","jsonrpc":"2.0","id":1,"method":"ping"}}`:    {"", otherChannel},
		`{"channel_id":"acp_` + other + `","jsonrpc":"2.0","id":1,"method":"ping"}`:                {"", otherChannel},
		`{"channel_id":"acp_` + id + `","jsonrpc":"2.0","id":1,"method":"ping"}`:                   {`{"channel_id":"acp_` + id + `","jsonrpc":"2.0","id":1,"method":"ping"}`, ""},
		`{"request":` + ping + `,"request":` + ping + `}`:                                          {"", notJSON},
		`{"request":"x"}`: {"", notJSON},
		`[` + ping + `]`:  {`[` + ping + `]`, ""}, `7`: {`7`, ""},
		`{"jsonrpc":"2.0","id":1,"method":"m","request":{}}`: {`{"jsonrpc":"2.0","id":1,"method":"m","request":{}}`, ""},
		`{"jsonrpc":"2.0","id":1,"meth`:                      {"", notJSON}, `hello`: {"", notJSON}, "{\"a\":\"\xff\"}": {"", notUTF8}, `{"a":1}{"b":2}`: {"", notJSON},
	} {
		message, why := messageOf([]byte(line), sessionID)
		if string(message) != want.message || why != want.why {
			t.Errorf("%s: %q %q, not %q %q", line, message, why, want.message, want.why)
		}
	}
}

// Whatever a line is: it is left out, or a JSON text of the line's own bytes that names no other session.
func FuzzALineIsAMessageOrLeftOut(f *testing.F) {
	for _, line := range []string{ping, `{"channel_id":"acp_x","request":` + ping + `}`, `{"request":{"channel_id":"` + sessionID + `"}}`, `[1]`, `{`, "\xff", `{"request":{},"request":{}}`, `{"channel\u005fid":"y","request":{}}`} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		before := bytes.Clone(line)
		message, why := messageOf(line, sessionID)
		if !bytes.Equal(line, before) {
			t.Fatal("the line was changed")
		}
		if why != "" {
			if message != nil {
				t.Fatalf("left out and served: %q", message)
			}
			return
		}
		if !utf8.Valid(message) || !jsonrpc.Valid(message) || !bytes.Contains(line, message) {
			t.Fatalf("%q became %q", line, message)
		}
		for _, text := range [][]byte{line, message} {
			if o, err := jsonrpc.ParseObject(text); err == nil && o.Has("channel_id") {
				raw, _ := o.Get("channel_id")
				if said, ok := jsonrpc.String(raw); !ok || bare(said) != bare(sessionID) {
					t.Fatalf("served although it names %q", said)
				}
			}
		}
	})
}
