package capability

import (
	"context"
	"crypto/sha256"
	jsonv1 "encoding/json"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// What policy decides about and what is dispatched is one thing, whatever bytes a caller sends: what the audit says was called is what the
// server got, the name that was asked for means it, the filter and the grants allow it, and no two readers of the arguments can read them
// differently.

// arrival is one call as a server got it.
type arrival struct {
	server, tool, arguments string
}

// dispatch is a desk with servers that answer everything at once.
type dispatch struct {
	who    Caller
	trail  *trail
	mu     sync.Mutex
	got    []arrival
	offers []binding // what may be called
	called int
}

func newDispatch(t testing.TB) *dispatch {
	d := &dispatch{trail: &trail{}}
	k := kerneltest.Start(t, kernel.Options{})
	parent, _ := kerneltest.Root(t, k)
	server := func(s *fakeServer) *fakeServer {
		s.probe.On = func(c *kernel.Ctx, m kernel.Msg) (bool, error) {
			switch m := m.(type) {
			case discover:
				c.Question().Answer(Discovered{}, nil)
			case Call:
				d.mu.Lock()
				d.got = append(d.got, arrival{s.server, m.Tool, string(m.Arguments)})
				d.mu.Unlock()
				m.Bytes.Release()
				c.Question().Answer(Result{Raw: []byte(`{"content":[]}`)}, nil)
			}
			return true, nil
		}
		s.ref = kerneltest.Spawn(t, parent, s.probe.Spec("server-"+strings.ReplaceAll(s.server, ".", "-")))
		return s
	}
	published := []string{"go", "GO", "a/b", "x:a:2fb", "shop.go", "files.go", "ü", "send", strings.Repeat("n", 200)}
	files, dotted := server(newServer("files", Ready, tools(published...)).but("send", "files.go")), server(newServer("shop.files", Ready, tools("go")))
	view := new(atomic.Pointer[View])
	grants := NewGrants([]Grant{{Name: "shop", Tools: []string{"go", "a/b", "shop.go", "ü"}}})
	desk := kerneltest.Spawn(t, parent, DeskSpec("desk", DeskConfig{Tag: "#12b9377c", View: view, Grants: grants, Audit: d.trail, Pins: &fakePins{},
		Configured: []Configured{files, dotted}}))
	shop := server(newServer("shop", Ready, tools(published...)))
	if err := desk.Signal(Attach{shop.fakeSource}); err != nil {
		t.Fatal(err)
	}
	for _, tool := range published {
		if files.Allows(tool) {
			d.offers = append(d.offers, configuredTool("files", tool))
		}
		if grants.Tool("shop", tool) {
			d.offers = append(d.offers, of("shop", tool))
		}
	}
	d.offers = append(d.offers, configuredTool("shop.files", "go"))
	d.who = Caller{Desk: desk, View: view, Tag: "#12b9377c", Account: k.Account(), Token: sha256.Sum256([]byte("token")), Audit: d.trail}
	return d
}

// agree makes one call and compares what was decided with what arrived.
func (d *dispatch) agree(t failer, name string, raw []byte) {
	d.mu.Lock()
	d.got = nil
	d.mu.Unlock()
	before := len(d.trail.all())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	delivery, err := Execute(ctx, d.who, Request{Name: name, Arguments: slices.Clone(raw)})
	d.mu.Lock()
	got := d.got
	d.mu.Unlock()
	entries := d.trail.all()[before:]
	if err != nil {
		var refusal *Refusal
		if !errors.As(err, &refusal) || len(got) != 0 || len(entries) != 1 || entries[0].Event != EventRefused {
			t.Fatalf("%q %q: refused with %v, and %v arrived; the audit has %+v", name, raw, err, got, entries)
		}
		return
	}
	delivery.Done()
	if len(got) != 1 || len(entries) != 2 || entries[0].Event != EventCall || entries[1].Event != EventExit {
		t.Fatalf("%q %q: %v arrived; the audit has %+v", name, raw, got, entries)
	}
	d.called++
	at, entry := got[0], entries[0]
	if entry.Server != at.server || entry.Tool != at.tool || entry.ArgsSHA != sha256.Sum256([]byte(at.arguments)) || entries[1].ArgsSHA != entry.ArgsSHA {
		t.Fatalf("%q %q: the audit says %+v, and %v arrived", name, raw, entry, at)
	}
	d.means(t, name, at)
	oneReading(t, at.arguments)
	switch text, isText := jsonrpc.String(raw); {
	case len(raw) == 0 || string(raw) == "null":
		if at.arguments != "{}" {
			t.Fatalf("%q became %s", raw, at.arguments)
		}
	case isText && at.arguments != strings.TrimSpace(text), !isText && at.arguments != string(raw):
		t.Fatalf("%q became %s", raw, at.arguments)
	}
}

// means checks that a name stands for what was called, and that it may be.
func (d *dispatch) means(t failer, name string, at arrival) {
	for _, b := range d.offers {
		forms := []string{b.tool, shown(b.tool), b.server + "." + b.tool, b.qualified()}
		if b.server == at.server && b.tool == at.tool && slices.Contains(forms, name) {
			return
		}
	}
	t.Fatalf("%q led to %v", name, at)
}

// oneReading checks that readers which take the first, the last, or no notice of the case of a member see the same arguments.
func oneReading(t failer, arguments string) {
	var strict, lax any
	if err := json.Unmarshal([]byte(arguments), &strict, jsontext.AllowInvalidUTF8(true)); err != nil {
		t.Fatalf("%q was sent: %v", arguments, err)
	}
	members, ok := strict.(map[string]any)
	if !ok {
		t.Fatalf("%q was sent, which is no object", arguments)
	}
	if err := jsonv1.Unmarshal([]byte(arguments), &lax); err == nil && !reflect.DeepEqual(strict, lax) {
		t.Fatalf("%q is read as %v and as %v", arguments, strict, lax)
	}
	for a := range members {
		for b := range members {
			if a != b && strings.EqualFold(a, b) {
				t.Fatalf("%q has %q and %q", arguments, a, b)
			}
		}
	}
}

func FuzzPolicyAndDispatchAgree(f *testing.F) {
	for _, raw := range []string{``, `null`, `{}`, `{"n":1}`, `{"n":1,"n":2}`, `{"n":1,"N":2}`, `"{\"n\":1}"`, `"{\"n\":1,\"\\u006e\":2}"`, `{"a":{"b":[{"c":1,"c":1}]}}`, `[]`, "{\"\xff\":1}",
		`{"\ud800":1}`, ` {"n":1}`, `{"n":1} `, `{"n":1}{}`, `{"k":1,"\u212A":2}`, `{"n":1e999}`, `"{}"`} {
		for _, name := range []string{"go", "shop.go", "files.a/b", "send"} {
			f.Add(name, []byte(raw))
		}
	}
	for _, name := range []string{"", ".", "x:a:2fb", "shop.x:a:2fb", "shop.files.go", "shop.shop.go", "files.files.go", "GO", "Go", "shop.send", strings.Repeat("n", 200), "files." + strings.Repeat("n", 200), "\xff"} {
		f.Add(name, []byte(`{}`))
	}
	d := newDispatch(f)
	f.Fuzz(func(t *testing.T, name string, raw []byte) {
		if len(raw) > 0 && !jsonrpc.Valid(raw) { // the facade finds arguments as one value of a body that is JSON
			return
		}
		d.agree(t, name, trimmed(raw))
	})
}

// trimmed is a value as the facade finds it: without space around it.
func trimmed(raw []byte) []byte { return []byte(strings.Trim(string(raw), " \t\r\n")) }

func TestPolicyAndDispatchAgreeAboutRandomArguments(t *testing.T) {
	d := newDispatch(t)
	tried := 0
	rapid.Check(t, func(t *rapid.T) {
		tried++
		raw := oddObject(t, 3)
		if rapid.IntRange(0, 3).Draw(t, "in a text") == 0 {
			raw = string(jsonrpc.AppendString(nil, raw))
		}
		d.agree(t, rapid.SampledFrom([]string{"go", "shop.go", "a/b", "x:a:2fb", "files.ü", "send", "shop.files.go", "GO", "n"}).Draw(t, "name"), []byte(raw))
	})
	if d.called*20 < tried || d.called*20 > tried*19 {
		t.Errorf("%d of %d were called: the other side was hardly tried", d.called, tried)
	}
}

// oddObject is an object whose members may stand twice, in other cases, or in other spellings.
func oddObject(t *rapid.T, depth int) string {
	names := []string{"n", "N", `\u006e`, "key", "KEY", `\u212aey`, "\u212aey", "o", `\ud800`, "", "a", "B"}
	var b strings.Builder
	b.WriteByte('{')
	for i := range rapid.IntRange(0, 4).Draw(t, "members") {
		if i > 0 {
			b.WriteString([]string{",", " , "}[rapid.IntRange(0, 1).Draw(t, "space")])
		}
		fmt.Fprintf(&b, `"%s":`, rapid.SampledFrom(names).Draw(t, "name"))
		switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
		case kind == 0 && depth > 0:
			b.WriteString(oddObject(t, depth-1))
		case kind == 1 && depth > 0:
			b.WriteString("[" + oddObject(t, depth-1) + "]")
		default:
			b.WriteString(rapid.SampledFrom([]string{"1", "9007199254740993", "1.0", `"x"`, "null", `"\u003c"`, "true", `"{\"n\":1}"`}).Draw(t, "value"))
		}
	}
	return b.String() + "}"
}
