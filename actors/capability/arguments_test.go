package capability

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

func TestArgumentsOfEachKindAreTheObjectThatTheyHoldOrRefusedWithTheSchema(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200)
	for _, tc := range []struct{ raw, sent, why string }{
		{``, `{}`, ""},
		{`null`, `{}`, ""},
		{`{}`, `{}`, ""},
		{`{"n":9007199254740993,"s":"<>&"}`, `{"n":9007199254740993,"s":"<>&"}`, ""},
		{`"{\"n\":1}"`, `{"n":1}`, ""},
		{`" {\"n\":9007199254740993,\"s\":\"\\u003c\"}\n"`, `{"n":9007199254740993,"s":"\u003c"}`, ""},
		{`"\u007b\u007d"`, `{}`, ""},
		{`"{\"n\":1,\"n\":2}"`, "", "sound JSON"},
		{`"{\"n\":1,\"N\":2}"`, "", "differ only in case"},
		{`"{\"n\":\"x\"}"`, "", "/n: "},
		{`"{"`, "", "not a string"},
		{`"[]"`, "", "not a string"},
		{`"null"`, "", "not a string"},
		{`""`, "", "not a string"},
		{`"\"{}\""`, "", "not a string"}, // decoded once
		{`[]`, "", "not an array"},
		{`7`, "", "not a number"},
		{`false`, "", "not a boolean"},
		{`{"n":1,"n":2}`, "", "sound JSON"},
		{`{"n":1,"\u006e":2}`, "", "sound JSON"},
		{`{"o":{"d":[{"x":1,"x":2}]}}`, "", "sound JSON"},
		{`{"n":1,"N":2}`, "", "differ only in case"},
		{`{"key":1,"\u212Aey":2}`, "", "differ only in case"},
		{`{"o":{"x":1,"X":2}}`, `{"o":{"x":1,"X":2}}`, ""}, // deeper, it is data
		{deep, "", "deeper"},
	} {
		run(t, DeskConfig{}, func(w *world) {
			s := w.attach(shop("shop.buy"))
			c := w.call(Request{Name: "shop.buy", Arguments: []byte(tc.raw)})
			if tc.why != "" {
				var refusal *Refusal
				e := c.wait()
				if e.code() != BadArguments || !strings.Contains(e.err.Error(), tc.why) {
					t.Errorf("%.60s: %v", tc.raw, e.err)
				} else if refusal = e.err.(*Refusal); !strings.Contains(string(refusal.Result()), `its input schema: {\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}`) {
					t.Errorf("%.60s: the schema is not in %s", tc.raw, refusal.Result())
				}
				w.reachedNobody(s)
				return
			}
			call, q := s.next(t)
			if string(call.Arguments) != tc.sent {
				t.Errorf("%s: %s was sent", tc.raw, call.Arguments)
			}
			if entries := w.trail.all(); entries[len(entries)-1].ArgsSHA != sha256.Sum256([]byte(tc.sent)) {
				t.Errorf("%s: the audit has the hash of something else", tc.raw)
			}
			w.answer(q, "ok")
			c.wait()
			counted := w.desk.Current()
			_ = counted
			node, _ := tree(w.k.Tree(), "desk")
			if got := node.Refused["arguments_string"]; (got == 1) != strings.HasPrefix(tc.raw, `"`) {
				t.Errorf("%s: %d strings are counted", tc.raw, got)
			}
		})
	}
}

func TestManyMembersAreComparedWithoutCaseOnTheAccount(t *testing.T) {
	account := kernel.New(kernel.Options{Limit: 1 << 20}).Account()
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, `"m%d":%d,`, i, i)
	}
	if err := variants(account, []byte("{"+b.String()+`"x":1}`)); err != nil {
		t.Errorf("members that differ: %v", err)
	}
	if err := variants(account, []byte("{"+b.String()+`"M7":1}`)); err == nil || !strings.Contains(err.Error(), `"m7" and "M7"`) {
		t.Errorf("got %v", err)
	}
	if err := variants(account, []byte("{"+strings.Repeat(b.String(), 20)+`"x":1}`)); err == nil {
		t.Error("an account without room took it")
	}
	if account.Used() != 0 {
		t.Errorf("%d bytes stay", account.Used())
	}
}

func TestASchemaInARefusalIsBounded(t *testing.T) {
	r := &Refusal{Code: BadArguments, Text: "no", Schema: []byte(`{"description":"` + strings.Repeat("x", 30_000) + `"}`)}
	if text := string(r.Result()); len(text) > 500 || !strings.Contains(text, "search_capabilities") {
		t.Errorf("got %d bytes: %.200s", len(text), text)
	}
	r.Schema = []byte("{\n \"type\" : \"object\"\n}")
	if text := string(r.Result()); !strings.Contains(text, `its input schema: {\"type\":\"object\"}`) {
		t.Errorf("got %s", text)
	}
}

func TestAServersErrorComesToTheByteWithoutCredentials(t *testing.T) {
	for _, tc := range []struct{ raw, want string }{
		{`{"code":-32042, "message":"open <this>","data":{"n":9007199254740993}}`,
			`{"content":[{"type":"text","text":"open <this>"}],"isError":true,"_meta":{"acpod.dev/error":{"code":-32042, "message":"open <this>","data":{"n":9007199254740993}}}}`},
		{`{"code":1,"message":"password=hunter22 is wrong"}`,
			`{"content":[{"type":"text","text":"password=*** is wrong"}],"isError":true,"_meta":{"acpod.dev/error":{"code":1,"message":"password=*** is wrong"}}}`},
		{`{"code":1,"message":"p\u0061ssword=hunter22"}`,
			`{"content":[{"type":"text","text":"password=***"}],"isError":true,"_meta":{"acpod.dev/error":{"code":1,"message":"password=***"}}}`},
	} {
		files := newServer("files", Ready, tools("read"))
		runWith(t, DeskConfig{}, []*fakeServer{files}, func(w *world) {
			c := w.call(Request{Name: "read"})
			_, q := files.next(t)
			q.Fail(jsonrpc.ParseError([]byte(tc.raw)))
			if e := c.wait(); string(e.result.Raw) != tc.want {
				t.Errorf("%s came as\n%s %v, want\n%s", tc.raw, e.result.Raw, e.err, tc.want)
			}
		})
	}
}

func TestAResultOverItsLimitNamesTheToolsOwnSizeArgument(t *testing.T) {
	for schema, want := range map[string]string{
		`{"properties":{"path":{"type":"string"},"limit":{"type":"integer"},"max_width":{"type":"integer"}}}`: `"limit"`,
		`{"properties":{"quality":{"type":"number"},"maxResults":{}}}`:                                        `"maxResults"`,
		`{"properties":{"max_things":{"type":"integer"}}}`:                                                    `"max_things"`,
		`{"properties":{"size":{"type":"string"},"page-size":{"type":"integer"}}}`:                            `"page-size"`,
		`{"properties":{"path":{"type":"string"},"maximum_name":{"type":"string"}}}`:                          "",
		`{"properties":7}`: "",
		`[]`:               "",
		``:                 "",
	} {
		if got := sizeArgument([]byte(schema)); got != want {
			t.Errorf("%s: %q, want %q", schema, got, want)
		}
	}
	files := newServer("files", Ready, tools("read!"))
	files.become(Toolset{State: Ready, List: func() *List {
		l := described(false, "shot: takes a picture")
		l.All()[0].InputSchema = []byte(`{"type":"object","properties":{"quality":{"type":"integer"}}}`)
		return l
	}()})
	runWith(t, DeskConfig{Limits: DeskLimits{ResultBytes: 10}}, []*fakeServer{files}, func(w *world) {
		c := w.call(Request{Name: "shot"})
		_, q := files.next(t)
		w.answer(q, "much too long")
		e := c.wait()
		for _, want := range []string{"bytes", "10", `its argument "quality" asks for less`} {
			if e.err == nil || !strings.Contains(e.err.Error(), want) {
				t.Errorf("%q is not in %v", want, e.err)
			}
		}
	})
}

func TestWhatTheOperatorsRulesNameIsTakenOutOfResults(t *testing.T) {
	redact := func(result []byte) []byte {
		if !strings.Contains(string(result), "hunter") {
			return result
		}
		return []byte(strings.ReplaceAll(string(result), "hunter", "a much longer text than it was"))
	}
	files := newServer("files", Ready, tools("read"))
	runWith(t, DeskConfig{Redact: redact}, []*fakeServer{files}, func(w *world) {
		for text, want := range map[string]string{"hunter": `"a much longer text than it was"`, "fine": `"fine"`} {
			c := w.call(Request{Name: "read"})
			_, q := files.next(t)
			w.answer(q, text)
			if e := c.wait(); e.err != nil || !strings.Contains(string(e.result.Raw), want) {
				t.Errorf("%s came as %s, %v", text, e.result.Raw, e.err)
			}
		}
	})
}
