package kernel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func TestTheTreeShowsWhatIsThere(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{Limit: 1 << 20})
	root, _ := kerneltest.Root(t, k)
	gate := make(chan struct{})
	p := kerneltest.NewProbe()
	p.OnStart = func(c *kernel.Ctx) error {
		c.Own("mcp/disconnect", func(context.Context, error) {})
		c.Attr("title", "line one\nline \x1b[31mtwo\x1b[0m \"quoted\" <b>")
		c.Attr("long", strings.Repeat("ä", 200))
		c.Attr("n", 7)
		c.Attr("took", 1500*time.Millisecond)
		c.Attr("err", errTest)
		c.Attr("bytes", []byte(kerneltest.Secret))
		c.Attr("gone", 1)
		c.Attr("gone", nil)
		c.Refuse("frame_bytes")
		c.Log().Info("started")
		return nil
	}
	p.On = func(*kernel.Ctx, kernel.Msg) (bool, error) { <-gate; return true, nil }
	s := p.Spec("child")
	s.Kind, s.Scope, s.Limit = "tunnel", "session_bytes", 5000
	r := kerneltest.Spawn(t, root, s)
	for range 3 {
		if err := r.Tell(sized(1000)); err != nil {
			t.Fatal(err)
		}
	}
	r.CountRefusal("frame_bytes")
	if _, full := errors.AsType[*kernel.Overloaded](r.Tell(sized(5000))); !full {
		t.Error("not refused")
	}
	kerneltest.Eventually(t, "the first is in its turn", func() bool { return k.Tree().Children[0].Doing != nil && k.Tree().Children[0].Queue.N == 2 })
	n := k.Tree().Children[0]
	if n.Path != "test/child" || n.Name != "child" || n.Kind != "tunnel" || n.Gen != r.Gen() || n.State != "running" || n.Since.IsZero() {
		t.Errorf("%+v", n)
	}
	if n.Queue.Bytes != 2*1128 || n.Queue.Turn != 1128 || n.Queue.Oldest.IsZero() || n.Account != (kernel.AccountStat{Used: 3 * 1128, Limit: 5000, Scope: "session_bytes"}) {
		t.Errorf("queue %+v, account %+v", n.Queue, n.Account)
	}
	if n.Doing.Type != "kernel_test.sized" || len(n.Owes) != 1 || n.Owes[0].Name != "mcp/disconnect" || n.Refused["frame_bytes"] != 2 || n.Refused["session_bytes"] != 1 {
		t.Errorf("%+v %+v %+v", n.Doing, n.Owes, n.Refused)
	}
	want := map[string]any{"title": `line one\nline \x1b[31mtwo\x1b[0m "quoted" <b>`, "long": strings.Repeat("ä", 63) + "…",
		"n": 7, "took": "1.5s", "err": errTest.Error(), "bytes": fmt.Sprintf("%d bytes", len(kerneltest.Secret))}
	if fmt.Sprint(n.Attrs) != fmt.Sprint(want) {
		t.Errorf("attrs %v\nwant  %v", n.Attrs, want)
	}
	close(gate)
}

func TestExitsLogThemselvesInOneLineWithoutPayload(t *testing.T) {
	var buf bytes.Buffer
	exits := make(chan kernel.Exit, 10)
	k := kernel.New(kernel.Options{Logger: slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelDebug})),
		OnExit: func(x kernel.Exit) { exits <- x }})
	root, _ := kerneltest.Root(t, k)
	r := kerneltest.Spawn(t, root, kernel.Spec{Name: "child", Kind: "thing", New: ending})
	_ = r.Tell("panic")
	x := <-exits
	if x.Path != "test/child" || x.Kind != "thing" || x.Gen != r.Gen() || x.Parent != root.Gen() || !x.Crashed || x.Abandoned || x.Next != 0 {
		t.Errorf("%+v", x)
	}
	k.Shutdown(within(t))
	if lines := strings.Split(strings.TrimSpace(buf.String()), "\n"); len(lines) != 2 ||
		!strings.Contains(lines[0], `level=ERROR msg="actor crashed" actor=test/child kind=thing`) || !strings.Contains(lines[0], "panic: told to") ||
		!strings.Contains(lines[1], `level=DEBUG msg="actor ended" actor=test`) {
		t.Errorf("log:\n%s", buf.String())
	}
}

func TestStartsAreToldWithWhatTheyFollow(t *testing.T) {
	starts := make(chan kernel.Started, 10)
	k := kernel.New(kernel.Options{OnStart: func(s kernel.Started) { starts <- s }})
	root, _ := kerneltest.Root(t, k)
	r := kerneltest.Spawn(t, root, kernel.Spec{Name: "child", Kind: "thing", Restart: kernel.Permanent,
		Backoff: kernel.Backoff{Min: time.Microsecond, Max: time.Millisecond}, New: ending})
	if s := <-starts; s.Path != "test" || s.Gen != root.Gen() || s.Follows != 0 {
		t.Errorf("%+v", s)
	}
	if s := <-starts; s.Path != "test/child" || s.Name != "child" || s.Kind != "thing" || s.Gen != r.Gen() || s.Follows != 0 {
		t.Errorf("%+v", s)
	}
	_ = r.Tell("panic")
	if s := <-starts; s.Path != "test/child" || s.Gen <= r.Gen() || s.Follows != r.Gen() {
		t.Errorf("%+v", s)
	}
	k.Shutdown(within(t))
	if len(starts) != 0 {
		t.Errorf("a further start: %+v", <-starts)
	}
}

func TestEscapeShowsOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                   "plain",
		"a\r\nb":                  `a\r\nb`,
		"\x1b]0;owned\a":          `\x1b]0;owned\a`,
		"\xff\xfe":                `\xff\xfe`,
		"back\\slash":             `back\\slash`,
		"\u202eright to left":     `\u202eright to left`,
		`"q"`:                     `"q"`,
		strings.Repeat("x", 10):   "xxxxxxxxxx",
		strings.Repeat("x", 11):   "xxxxxxxxx…",
		strings.Repeat("\n", 900): `\n\n\n\n\n…`[:9] + "…",
	} {
		if got := kernel.Escape(in, 10); got != want && len([]rune(want)) <= 10 {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		if got := kernel.Escape(in, 10); len([]rune(got)) > 10 {
			t.Errorf("%q: %q is too long", in, got)
		}
	}
}
