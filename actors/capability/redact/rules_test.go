package redact

import (
	"bytes"
	"encoding/json/v2"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

func rules(t testing.TB, patterns ...string) *Rules {
	t.Helper()
	r, err := Compile(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPatternsThatWouldDoHarmAreRefused(t *testing.T) {
	for pattern, why := range map[string]string{
		``: "least", `a*`: "least", `(abc)?`: "least", `abcd|x`: "least", `\b`: "least", `^$`: "least", `ab`: "least", `[a-z]{2}`: "least", `(`: "missing", `a{1001}`: "repeat",
		`(?=a)bcd`: "invalid", strings.Repeat("a", MaxPattern+1): "bytes", `(a{900}|b{900})(c{900}|d{900})x` + strings.Repeat(`[a-z]{1000}`, 20): "large",
	} {
		_, err := Compile([]string{"good[0-9]", pattern})
		var bad *PatternError
		if !errors.As(err, &bad) || bad.Index != 1 || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: %v, want it to speak of %q", pattern, err, why)
		}
	}
	if _, err := Compile(make([]string, MaxPatterns+1)); err == nil {
		t.Error("any number of patterns is taken")
	}
	if r, err := Compile(nil); r != nil || err != nil {
		t.Errorf("no patterns: %v, %v", r, err)
	}
}

func TestOnlyTextsOfAResultAreMasked(t *testing.T) {
	r := rules(t, `AKIA[A-Z0-9]{16}`, `(?i)card \d{4}-\d{4}`, `x{3,}`)
	const key = "AKIAIOSFODNN7EXAMPLE"
	for in, want := range map[string]string{
		`{"content":[{"type":"text","text":"a AKIAIOSFODNN7EXAMPLE b"}]}`:       `{"content":[{"type":"text","text":"a *** b"}]}`,
		`{"content":[{"type":"text","text":"Card 1234-5678"}],"isError":false}`: `{"content":[{"type":"text","text":"***"}],"isError":false}`,
		// escapes: a secret is found however it is written, and what stands beside it keeps its bytes
		`{"content":[{"text":"\u003c\ud83d\ude00 \u0041KIAIOSFODNN7EXAMPLE\n\ud800 \"q\""}]}`: `{"content":[{"text":"\u003c\ud83d\ude00 ***\n\ud800 \"q\""}]}`,
		`{"content":[{"text":"\\\\AKIAIOSFODNN7EXAMPLE\\"}]}`:                                 `{"content":[{"text":"\\\\***\\"}]}`,
		// data stays, and only data
		`{"content":[{"type":"image","data":"AKIAIOSFODNN7EXAMPLE","mimeType":"image/png"}]}`:                                                      "",
		`{"content":[{"data":"AKIAIOSFODNN7EXAMPLE","mimeType":"a","typ\u0065":"audi\u006f"}]}`:                                                    "",
		`{"content":[{"type":"text","data":"AKIAIOSFODNN7EXAMPLE"}]}`:                                                                              `{"content":[{"type":"text","data":"***"}]}`,
		`{"content":[{"data":"AKIAIOSFODNN7EXAMPLE","type":"text"},{"data":"AKIAIOSFODNN7EXAMPLE","data":"AKIAIOSFODNN7EXAMPLE","type":"image"}]}`: `{"content":[{"data":"***","type":"text"},{"data":"***","data":"AKIAIOSFODNN7EXAMPLE","type":"image"}]}`,
		`{"content":[{"type":"image","data":"x","alt":"AKIAIOSFODNN7EXAMPLE"}]}`:                                                                   `{"content":[{"type":"image","data":"x","alt":"***"}]}`,
		`{"content":[{"type":"resource","resource":{"uri":"f","blob":"AKIAIOSFODNN7EXAMPLE","mimeType":"m"}}]}`:                                    "",
		`{"content":[{"type":"resource","resource":{"uri":"f","text":"AKIAIOSFODNN7EXAMPLE"}}]}`:                                                   `{"content":[{"type":"resource","resource":{"uri":"f","text":"***"}}]}`,
		`{"structuredContent":{"type":"image","data":"AKIAIOSFODNN7EXAMPLE","blob":["xxx",{"a":"xxxx"}]}}`:                                         `{"structuredContent":{"type":"image","data":"***","blob":["***",{"a":"***"}]}}`,
		`{"_meta":{"v":"AKIAIOSFODNN7EXAMPLE"},"content":[]}`:                                                                                      `{"_meta":{"v":"***"},"content":[]}`,
		// names of members, numbers and what only looks like a result stay
		`{"AKIAIOSFODNN7EXAMPLE":1,"content":{"text":[]}}`:              "",
		`{ "content" : [ ] , "n" : -1.5e9 , "b":[true,false,null,{}] }`: "",
		// no JSON: nobody can say what is text in it
		`{"content":[{"text":"AKIAIOSFODNN7EXAMPLE"}]`: "", `["AKIAIOSFODNN7EXAMPLE"]`: "", `{"a":"AKIAIOSFODNN7EXAMPLE",}`: "", `{"a":"AKIAIOSFODNN7EXAMPLE"}x`: "", ``: "",
	} {
		got := r.Result([]byte(in))
		if want == "" {
			want = in
		}
		if string(got) != want {
			t.Errorf("%s\n became %s\n want   %s", in, got, want)
		}
	}
	raw := []byte(`{"content":[{"type":"text","text":"nothing to see in AKIA"}]}`)
	if got := r.Result(raw); &got[0] != &raw[0] || len(got) != len(raw) {
		t.Error("a result without a match is not the same slice")
	}
	if got := (*Rules)(nil).Result(raw); &got[0] != &raw[0] {
		t.Error("without rules it is not the same slice")
	}
	if in := []byte(`{"a":"` + key + `"}`); string(r.Result(in)) != `{"a":"***"}` || string(in) != `{"a":"`+key+`"}` {
		t.Error("the result that came in was changed")
	}
}

// A pattern that asks where a text begins or ends is not asked line by line.
func TestTheBeginningOfALineIsNotThatOfATextUnlessThePatternSaysSo(t *testing.T) {
	for _, row := range []struct{ pattern, in, want string }{
		{`^abcd`, `{"t":"x\nabcd\nabcd"}`, ``}, {`abcd$`, `{"t":"abcd\nx"}`, ``}, {`(?m)^abcd$`, `{"t":"x\nabcd\ny"}`, `{"t":"x\n***\ny"}`},
		{`\Aabcd`, `{"t":"abcd\nabcd"}`, `{"t":"***\nabcd"}`}, {`a\s+bcd`, `{"t":"a\n bcd"}`, `{"t":"***"}`}, {`(?s)a.+bcd`, `{"t":"a\n\nbcd"}`, `{"t":"***"}`}, {`\babcd\b`, `{"t":"abcd\nabcd"}`, `{"t":"***\n***"}`},
	} {
		if row.want == "" {
			row.want = row.in
		}
		if got := string(rules(t, row.pattern).Result([]byte(row.in))); got != row.want {
			t.Errorf("%s: %s became %s, want %s", row.pattern, row.in, got, row.want)
		}
	}
}

func TestMatchesThatOverlapAreMaskedWhole(t *testing.T) {
	r := rules(t, `abc+d`, `cde+f`, `\bsecret\d+`)
	for in, want := range map[string]string{
		`{"t":"xabcdefx"}`:      `{"t":"x***x"}`,
		`{"t":"abcdabcd"}`:      `{"t":"***"}`,
		`{"t":"abcdsecret123"}`: `{"t":"***"}`, // which begins a word only once the text before it is masked
		`{"t":"abcd-secret12"}`: `{"t":"***-***"}`,
	} {
		if got := string(r.Result([]byte(in))); got != want && got != strings.Replace(want, `"***"`, `"******"`, 1) {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

// Whatever a pattern needs is in every text that it matches; a need that is too strong would let secrets through.
func TestWhatAPatternNeedsIsInAllThatItMatches(t *testing.T) {
	for pattern, texts := range map[string][]string{
		`AKIA[A-Z0-9]{16}`:             {"xAKIAIOSFODNN7EXAMPLEy"},
		`(?i)bearer\s+\S+`:             {"BEARER abc", "Bearer\tx", "beare\u0072 y"},
		`(?i)kiss[0-9]`:                {"KISS1", "\u212ai\u017fs2"},
		`\d{3}-\d{2}-\d{4}`:            {"123-45-6789", "x123-45-6789"},
		`\d{13,16}`:                    {"aaa4111111111111111", "4111111111111"},
		`(?:\d[ -]?){13,16}`:           {"4111 1111 1111 1111", "4111-1111-1111-1"},
		`[\w.+-]+@[\w-]+\.[\w.]+`:      {"bob@h.example"},
		`(foo|ba)r\d+`:                 {"foor1", "bar22"},
		`(?:abc)+x?\d*yz`:              {"abcyz", "abcabcx12yz"},
		`(?s)BEGIN.*?END`:              {"BEGIN\nx END"},
		`gr[üu]n\d`:                    {"grün1", "grun2"},
		`^abc$|def`:                    {"abc", "xdefx"},
		`(?i)\bsk-[a-z0-9]{20,}\b`:     {"SK-ABCDEFGHIJKLMNOPQRST12", "x s\u212a-abcdefghij\u017flmnopqrst"},
		`[^"]{3}=x`:                    {"äöü=x"},
		`(a|b)(c|d)(e|f){2,3}[0-9]*?z`: {"aceez", "bdfff12z"},
		`x*yyy+z*`:                     {"yyy", "xxyyyyzz"},
	} {
		r := rules(t, pattern)
		for _, text := range texts {
			if !regexp.MustCompile(pattern).MatchString(text) {
				t.Fatalf("%s does not match %q", pattern, text)
			}
			if !r.rules[0].need.in([]byte(text)) {
				t.Errorf("%s: its need %+v is not in %q", pattern, r.rules[0].need.literal, text)
			}
		}
	}
}

func TestTheNeedOfAUsualPatternIsFound(t *testing.T) {
	for pattern, want := range map[string]string{
		`AKIA[A-Z0-9]{16}`: "AKIA run", `(?i)bearer\s+\S+`: "bearer fold", `\d{3}-\d{2}-\d{4}`: "- run", `\d{13,16}`: " run", `ghp_\w{36}`: "ghp_ run", `(?:foo|bar)baz`: "baz run", `[\w.+-]+@[\w-]+\.[\w.]+`: "@ run",
	} {
		tree, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		n := needOf(tree.Simplify())
		got := string(n.literal)
		if n.fold {
			got += " fold"
		}
		if n.run > 0 {
			got += " run"
		}
		if got != want {
			t.Errorf("%s needs %q, want %q", pattern, got, want)
		}
	}
}

var fuzzed = []string{`AKIA[A-Z0-9]{16}`, `(?i)bearer\s+[a-z0-9]+`, `\b\d{3}-\d{2}-\d{4}\b`, `secret\w{2,}`, `"{3}`, `é+xy`}

func FuzzResult(f *testing.F) {
	for _, s := range []string{
		`{"content":[{"type":"text","text":"AKIAIOSFODNN7EXAMPLE Bearer\tabc 123-45-6789"}],"structuredContent":{"secretxy":"secretxyz"}}`,
		`{"content":[{"type":"image","data":"secretxyz"},{"type":"resource","resource":{"blob":"secretxyz","text":"\u0073ecretxyz"}}]}`,
		`{"a":"\ud83d\ude00\ud800\"\"\"\"","b":["éxy",{"c":["\\secretab\\"]}]}`, `{}`, `{"a":[[],{},"\u00e9xy"]}`, `{"a":"AKIAIOSFODNN7EXAMPLEsecretab"}`, "{\"a\":\"secretxx\xff\"}",
	} {
		f.Add([]byte(s))
	}
	r, err := Compile(fuzzed)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		out := r.Result(raw)
		if !bytes.Equal(raw, before) {
			t.Fatal("the result that came in was changed")
		}
		if len(out) > len(raw) {
			t.Fatalf("it grew from %d to %d bytes", len(raw), len(out))
		}
		if again := r.Result(out); !bytes.Equal(again, out) {
			t.Fatalf("%s\n became %s\n and then %s", raw, out, again)
		}
		if !jsonrpc.Valid(raw) {
			return
		}
		if !jsonrpc.Valid(out) {
			t.Fatalf("%s\n became %s, which is no JSON", raw, out)
		}
		was, now := texts(raw), texts(out)
		if len(was) != len(now) {
			t.Fatalf("%s\n became %s: other values", raw, out)
		}
		for i := range was {
			if was[i].fixed != now[i].fixed {
				t.Fatalf("%s\n became %s: %q became %q", raw, out, was[i].fixed, now[i].fixed)
			}
			if was[i].text == now[i].text {
				continue
			}
			if !strings.Contains(now[i].text, Mask) {
				t.Fatalf("%q became %q", was[i].text, now[i].text)
			}
		}
		if len(raw) > 0 && bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) && !bytes.Contains(raw, []byte(`\`)) && !bytes.Contains(raw, []byte("data")) && !bytes.Contains(raw, []byte("blob")) {
			for _, s := range now {
				for _, one := range r.rules {
					if s.value && one.pattern.MatchString(s.text) {
						t.Fatalf("%s\n became %s: %s still matches %q", raw, out, one.pattern, s.text)
					}
				}
			}
		}
	})
}

// piece is a token of a JSON text: a string, or what stands outside of strings, space included.
type piece struct {
	fixed string
	text  string
	value bool
}

// texts cuts well-formed JSON into its strings and what stands between them, without any code of the package.
func texts(raw []byte) (list []piece) {
	from := 0
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			continue
		}
		end := i + 1
		for raw[end] != '"' {
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		rest := bytes.TrimLeft(raw[end+1:], " \t\r\n")
		value := len(rest) == 0 || rest[0] != ':'
		p := piece{fixed: string(raw[from : i+1]), text: string(raw[i+1 : end]), value: value}
		if !value {
			p.fixed, p.text = p.fixed+p.text, ""
		}
		list = append(list, p)
		from, i = end, end
	}
	return append(list, piece{fixed: string(raw[from:])})
}

func TestTheValueOfAMaskedResultIsThatOfTheResult(t *testing.T) {
	raw := `{"content":[{"type":"text","text":"123-45-6789"}],"structuredContent":{"n":9007199254740993,"s":"<&>\u2028"},"_meta":{"a":[1.0,true,null]}}`
	out := rules(t, `\d{3}-\d{2}-\d{4}`).Result([]byte(raw))
	var a, b map[string]any
	if err := errors.Join(json.Unmarshal([]byte(strings.Replace(raw, "123-45-6789", Mask, 1)), &a), json.Unmarshal(out, &b)); err != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("%s: %v", out, err)
	}
}

// usual are patterns as an operator would have them.
var usual = []string{`AKIA[A-Z0-9]{16}`, `gh[pousr]_[A-Za-z0-9]{36}`, `(?i)\bsk-[a-z0-9_-]{20,}`, `\b\d{3}-\d{2}-\d{4}\b`, `-----BEGIN [A-Z ]*PRIVATE KEY-----`, `eyJ[\w-]+\.[\w-]+\.[\w-]+`, `(?i)authorization:\s*\S+`, `xox[bp]-[\w-]{10,}`}

func page(size int) []byte {
	const line = `<div class=\"row item-7\" data-id=\"af31\">The quick brown fox, 2024-05-06, costs 12.50 EUR; see https://h.example/a?b=1#c</div>\n`
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":"%s"}],"isError":false}`, strings.Repeat(line, size/len(line)))
}

func BenchmarkResult(b *testing.B) {
	r := rules(b, usual...)
	image := fmt.Appendf(nil, `{"content":[{"type":"image","data":"%s","mimeType":"image/png"}]}`, strings.Repeat("iVBORw0KGgoAAAANSUhEUgAA", 5<<20/24))
	plain := fmt.Appendf(nil, `{"content":[{"type":"text","text":"%s"}]}`, strings.Repeat("The quick brown fox jumps over the lazy dog. ", 64<<10/45))
	for _, c := range []struct {
		name string
		raw  []byte
	}{{"4KiB", page(4 << 10)}, {"64KiB", page(64 << 10)}, {"64KiBplain", plain}, {"image5MB", image}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.raw)))
			b.ReportAllocs()
			for b.Loop() {
				if out := r.Result(c.raw); len(out) != len(c.raw) {
					b.Fatal("it matched")
				}
			}
		})
	}
}
