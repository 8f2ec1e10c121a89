package scale

import (
	"errors"
	"strings"
	"testing"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

func TestAnExtensionSignsWhatItServes(t *testing.T) {
	e := &extension{number: 17, filler: filler(200)}
	f, fault := jsonrpc.Scan([]byte(`{"jsonrpc":"2.0","id":5,"method":"mcp/message","params":{"connectionId":"c","method":"tools/call","params":` +
		`{"name":"scale.type","arguments":{"call":99,"selector":"#f","text":"x"}}}}`))
	if fault != nil {
		t.Fatal(fault.Message)
	}
	answer := e.answer(f)
	text := signed(17, []byte("99"), e.filler)
	if len(text) != 200 || !strings.HasPrefix(text, "extension 17 served call 99 ") {
		t.Errorf("the text is %q", text)
	}
	if err := judge(answer, "5", text); err != nil {
		t.Error(err)
	}
	if e.served.Load() != 1 {
		t.Errorf("%d calls were counted", e.served.Load())
	}
}

func TestAWrongAnswerIsToldByItsKind(t *testing.T) {
	want := signed(1, []byte("2"), filler(100))
	for kind, answer := range map[string]string{
		"malformed":  `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"` + want + `"}]}}`,
		"error":      `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"no"}}`,
		"is_error":   `{"jsonrpc":"2.0","id":2,"result":{"content":[],"isError":true}}`,
		"overloaded": `{"jsonrpc":"2.0","id":2,"result":{"content":[],"isError":true,"_meta":{"acpod.dev/refusal":"overloaded"}}}`,
		"foreign":    `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"` + signed(7, []byte("2"), filler(100)) + `"}]}}`,
		"right":      `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"` + want + `"}]}}`,
	} {
		err := judge([]byte(answer), "2", want)
		if failed, ok := errors.AsType[*failure](err); kind == "right" && err != nil || kind != "right" && (!ok || failed.kind != kind) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestAServerThatIsNotConnectedEndsTheExtension(t *testing.T) {
	e := &extension{token: "t", ready: make(chan struct{})}
	for _, params := range []string{`{"servers":[{"state":"connecting"}]}`, `{"servers":[{"state":"ready"}]}`, `{"servers":[{"state":"withdrawn"}]}`} {
		if err := e.told([]byte(params)); err != nil {
			t.Errorf("%s: %v", params, err)
		}
	}
	select {
	case <-e.ready:
	default:
		t.Error("it is not ready although its server is")
	}
	e = &extension{token: "t", ready: make(chan struct{})}
	if err := e.told([]byte(`{"servers":[{"state":"refused","reason":"no grant"}]}`)); err == nil || !strings.Contains(err.Error(), "no grant") {
		t.Errorf("a refused server: %v", err)
	}
}
