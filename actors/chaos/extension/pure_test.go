package extension

import (
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpod/acpod/actors/chaos/fault"
	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What is expected of the pod is what the protocol says of such a frame.
func TestNonsenseIsNonsense(t *testing.T) {
	for _, n := range nonsenses {
		if n.binary {
			continue
		}
		f, fault := jsonrpc.Scan(n.frame)
		code := 0
		if fault != nil && !fault.Silent() {
			code = fault.Code
		}
		if code != n.code {
			t.Errorf("%s %.60q: the code is %d, expected is %d", n.variant, n.frame, code, n.code)
		}
		if fault == nil && f.Kind == jsonrpc.Request {
			t.Errorf("%s %.60q is a request", n.variant, n.frame)
		}
	}
}

func TestWhatASessionWasGivenIsRead(t *testing.T) {
	result := []byte(`{"sessionId":"s","_meta":{"acpod.dev/facade":{"url":"http://x/mcp","token":"t"},` +
		`"acpod.dev/servers":{"servers":[{"name":"a","id":"1","state":"refused"},{"name":"b","id":"2","state":"connecting"}],"facade":{"state":"ready"}}}}`)
	if url, token := facadeOf(result); url != "http://x/mcp" || token != "t" {
		t.Errorf("the facade is %q, %q", url, token)
	}
	states := statesOf(result)
	if len(states) != 2 || states[0].State != "refused" || states[1].Name != "b" {
		t.Errorf("the servers are %+v", states)
	}
	for _, none := range []string{`{}`, `{"_meta":{}}`, `[]`, `{"_meta":{"acpod.dev/facade":7}}`} {
		if url, token := facadeOf([]byte(none)); url+token != "" || statesOf([]byte(none)) != nil {
			t.Errorf("%s gave %q, %q, %v", none, url, token, statesOf([]byte(none)))
		}
	}
}

func TestAServerThatIsNotRefusedBreaksThePromise(t *testing.T) {
	for state, breaks := range map[string]bool{"refused": false, "connecting": true} {
		book := invariant.NewBook(nil)
		e := &Extension{w: &World{Book: book}}
		e.refusedServer(1, 1)([]byte(`{"_meta":{"acpod.dev/servers":{"servers":[{"name":"x","id":"1","state":"` + state + `"}]}}}`))
		if broken := book.Broken(); (len(broken) == 1) != breaks {
			t.Errorf("%s: broken are %v", state, broken)
		}
	}
}

func TestHostileTextsHoldWhatTheyAreFor(t *testing.T) {
	all := strings.Join(hostileTexts, "")
	for _, part := range []string{"<script", "\n", "\r", "\x1b[", "\x00", "\x7f", "\u202e", "\u2066", "\u2028", "\u0085"} {
		if !strings.Contains(all, part) {
			t.Errorf("%q is in none of them", part)
		}
	}
}

func TestPayloadsAreMostlySmall(t *testing.T) {
	var sizes []int
	for number := range 4000 {
		sizes = append(sizes, size(fault.NewDice(1).Of("size", 0, number), 1<<20))
	}
	slices.Sort(sizes)
	if median, most := sizes[len(sizes)/2], sizes[len(sizes)-1]; median > 2<<10 || most < 64<<10 || most > 1<<20 {
		t.Errorf("the median is %d bytes, the largest %d", median, most)
	}
	if o := pad(1000); len(o) < 1000 || !jsonrpc.IsObject(o) || !jsonrpc.Valid(o) {
		t.Errorf("padding is %.60q", o)
	}
}

func TestWhichEndsOfASocketProveNothingOfAFrameOverTheBound(t *testing.T) {
	for _, test := range []struct {
		code    int
		reason  string
		proxied bool
		nothing bool
	}{
		{0, "", false, true},
		{1012, "shutdown", false, true},
		{1013, "slow_reader", false, true},
		{1008, "pong_timeout", false, true},
		{1008, "frame_timeout", false, false},
		{1008, "frame_timeout", true, true},
		{1002, "protocol_error", true, false},
		{1000, "", false, false},
		{1011, "crashed", false, false},
	} {
		if nothing := before(test.code, test.reason, test.proxied); nothing != test.nothing {
			t.Errorf("an end with %d %q (proxied: %v) proves nothing: %v", test.code, test.reason, test.proxied, nothing)
		}
	}
}
