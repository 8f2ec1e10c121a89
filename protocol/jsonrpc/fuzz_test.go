package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

var frameSeeds = []string{
	`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`,
	`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"sess_00000000-0000-0000-0000-000000000000"}}`,
	`{"jsonrpc":"2.0","id":"7","result":{"content":[{"type":"text","text":"\ud800\u003c"}]}}`,
	`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x","data":{"a":1,"a":2}}}`,
	`{"jsonrpc":"2.0","id":1,"i\u0064":2,"method":"m"}`,
	`[{"jsonrpc":"2.0","id":1,"method":"m"}]`, `{"id":1.5,"method":"m"}`, `{"id":9007199254740993,"jsonrpc":"2.0","method":"\u006d"}`,
	"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\",\"params\":\"\xc0\xaf\"}", `{"jsonrpc":"2.0","id":-0,"method":"m"}`,
}

func seed(f *testing.F, texts ...[]string) {
	for _, list := range texts {
		for _, s := range list {
			f.Add([]byte(s))
		}
	}
}

// FuzzScan holds the scanner against encoding/json: what one of them calls JSON is
// JSON to the other, and what was found of an envelope is what a decoder finds.
func FuzzScan(f *testing.F) {
	seed(f, syntaxSeeds, frameSeeds)
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, fault := Scan(b)
		if valid := json.Valid(b); valid == (fault != nil && fault.Code == CodeParse) {
			t.Fatalf("encoding/json says valid %v, fault %+v", valid, fault)
		}
		if fault != nil {
			if answer := AppendFault(nil, fault); len(answer) > 0 && !json.Valid(answer) {
				t.Fatalf("the answer is not JSON: %q", answer)
			}
			return
		}
		// encoding/json takes the name "ID" for id too; a map does not.
		var members map[string]json.RawMessage
		if err := json.Unmarshal(b, &members); err != nil {
			t.Fatal(err)
		}
		for name, got := range map[string][]byte{"params": frame.Params, "id": frame.ID.Raw()} {
			if want := members[name]; !bytes.Equal(got, want) {
				t.Fatalf("%s is %q, encoding/json says %q", name, got, want)
			}
		}
		if frame.HasMethod {
			var method string
			if err := json.Unmarshal(members["method"], &method); err != nil || method != frame.Method && len(members["method"]) <= maxMethodBytes+2 {
				t.Fatalf("method %q, encoding/json says %q, %v", frame.Method, method, err)
			}
		}
		rebuild(t, frame)
	})
}

// rebuild builds the frame again from what was found and expects to find the same.
func rebuild(t *testing.T, frame Frame) {
	var again []byte
	switch {
	case frame.Kind == Request:
		again = AppendRequest(nil, frame.ID, frame.Method, frame.Params)
	case frame.Kind == Notification:
		again = AppendNotification(nil, frame.Method, frame.Params)
	case frame.Error != nil:
		again = AppendRawError(nil, frame.ID, frame.Error)
	default:
		again = AppendResult(nil, frame.ID, frame.Result)
	}
	second, fault := Scan(again)
	if fault != nil {
		t.Fatalf("built %q, which is refused: %+v", again, fault)
	}
	if second.Kind != frame.Kind || second.ID != frame.ID || second.Method != frame.Method ||
		!bytes.Equal(second.Params, frame.Params) || !bytes.Equal(second.Result, frame.Result) || !bytes.Equal(second.Error, frame.Error) {
		t.Fatalf("built %q from %+v", again, frame)
	}
}

// FuzzObject checks that an edit changes what it names and nothing else.
func FuzzObject(f *testing.F) {
	seed(f, syntaxSeeds, frameSeeds, []string{`{"a":1,"b":2,"a":3}`, `{ "a" : 1 , "\u0061" : 2 }`, "{\n}", `{"b":[1]}`})
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := ParseObject(b)
		if isObject := json.Valid(b) && bytes.TrimLeft(b, " \t\r\n")[0] == '{'; isObject != (err == nil) {
			t.Fatalf("encoding/json says object %v, we say %v", isObject, err)
		}
		if err != nil {
			return
		}
		if same := o.Apply(nil); !bytes.Equal(same, o.Raw()) {
			t.Fatalf("no edit made %q of %q", same, o.Raw())
		}
		for name, value := range o.Members() {
			if !json.Valid(value) {
				t.Fatalf("the value of %q is %q", name, value)
			}
		}
		edited, err := ParseObject(o.Apply(nil, Edit{"a", []byte(`"new"`)}, Edit{"b", nil}))
		if err != nil {
			t.Fatalf("an edit made %q of %q", o.Apply(nil, Edit{"a", []byte(`"new"`)}, Edit{"b", nil}), b)
		}
		if got, _ := edited.Get("a"); string(got) != `"new"` || edited.Unique("a") != nil || edited.Has("b") {
			t.Fatalf("an edit made %q of %q", edited.Raw(), b)
		}
		var want, got [][]byte
		for name, value := range o.Members() {
			if name != "a" && name != "b" {
				want = append(want, value)
			}
		}
		for name, value := range edited.Members() {
			if name != "a" && name != "b" {
				got = append(got, value)
			}
		}
		if !bytes.Equal(bytes.Join(want, []byte("|")), bytes.Join(got, []byte("|"))) {
			t.Fatalf("an edit made %q of %q", edited.Raw(), b)
		}
	})
}

// FuzzElements holds arrays against encoding/json.
func FuzzElements(f *testing.F) {
	seed(f, syntaxSeeds, []string{`[1,"a",{"b":[ ]},[[2]],null]`})
	f.Fuzz(func(t *testing.T, b []byte) {
		elements, err := Elements(b)
		if isArray := json.Valid(b) && bytes.TrimLeft(b, " \t\r\n")[0] == '['; isArray != (err == nil) {
			t.Fatalf("encoding/json says array %v, we say %v", isArray, err)
		}
		if err != nil {
			return
		}
		var want []json.RawMessage
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		n := 0
		for i, e := range elements {
			if i != n || i >= len(want) || !bytes.Equal(e, bytes.TrimSpace(want[i])) {
				t.Fatalf("element %d is %q of %q", i, e, want)
			}
			n++
		}
		if n != len(want) {
			t.Fatalf("%d elements of %d", n, len(want))
		}
	})
}

// FuzzString holds decoded strings against encoding/json.
func FuzzString(f *testing.F) {
	seed(f, syntaxSeeds)
	f.Fuzz(func(t *testing.T, b []byte) {
		if !Valid(b) {
			return
		}
		raw, _ := onlyValue(b)
		got, ok := String(raw)
		var want string
		isString := raw[0] == '"'
		if isString != ok {
			t.Fatalf("%q: string %v", raw, ok)
		}
		if !ok {
			return
		}
		if err := json.Unmarshal(raw, &want); err != nil || got != want {
			t.Fatalf("%q decodes to %q, encoding/json says %q, %v", raw, got, want, err)
		}
		if id, ok := ParseID(raw); ok && !bytes.Equal(id.Raw(), raw) {
			t.Fatalf("the id %q became %q", raw, id.Raw())
		}
	})
}

// FuzzLineReader holds the reader against a split of the whole text, in pieces as
// small as one byte.
func FuzzLineReader(f *testing.F) {
	for _, s := range []string{"", "\n", "a\nb", "a\r\nb\r\n", "123456789\n1234567890\r\n12345678901\n\nx", "\r\n\r", "äöü\n\xff\n"} {
		f.Add([]byte(s), uint8(10))
	}
	f.Fuzz(func(t *testing.T, b []byte, limit uint8) {
		max := int(limit)
		var want []string
		for _, line := range strings.Split(string(b), "\n") {
			line = strings.TrimSuffix(line, "\r")
			switch {
			case len(line) > max:
				want = append(want, "too long")
			case line != "":
				want = append(want, line)
			}
		}
		for name, r := range map[string]io.Reader{"at once": bytes.NewReader(b), "byte by byte": iotest.OneByteReader(bytes.NewReader(b))} {
			var got []string
			l := NewLineReader(r, max)
			for {
				line, err := l.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					if tooLong := (*LineTooLong)(nil); !errors.As(err, &tooLong) {
						t.Fatal(err)
					}
					got = append(got, "too long")
					continue
				}
				got = append(got, string(line))
			}
			if strings.Join(got, "\x00") != strings.Join(want, "\x00") {
				t.Fatalf("%s: %q, want %q", name, got, want)
			}
		}
	})
}

// FuzzValidUTF8 checks that only bad bytes are replaced.
func FuzzValidUTF8(f *testing.F) {
	for _, s := range []string{"", "a", "é", "\xff", "a\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\uFFFD", "x\x80y\x80"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		out, n := ValidUTF8(b)
		if want := strings.ToValidUTF8(string(b), "?"); !utf8.Valid(out) || (n == 0) != (want == string(b)) {
			t.Fatalf("%q became %q with %d replaced", b, out, n)
		}
		if want := string([]rune(string(b))); string(out) != want {
			t.Fatalf("%q became %q, not %q", b, out, want)
		}
		if len(out) != len(b)+2*n {
			t.Fatalf("%d bytes became %d with %d replaced", len(b), len(out), n)
		}
	})
}

// FuzzParseError checks that what a peer sends as its error leaves as it came, or as
// valid data of ours.
func FuzzParseError(f *testing.F) {
	seed(f, syntaxSeeds, []string{`{"code":-1,"message":"m"}`, `{"code":1.5,"message":"m"}`, `{"message":"m","code":2,"data":{"reason":"idle"}}`, `{"code":1,"message":2}`})
	f.Fuzz(func(t *testing.T, b []byte) {
		e := ParseError(b)
		out := e.AppendObject(nil)
		if !json.Valid(out) {
			t.Fatalf("%q became %q", b, out)
		}
		if e.Raw() != nil && !bytes.Equal(out, b) {
			t.Fatalf("%q became %q", b, out)
		}
		if strings.ContainsAny(e.Error(), "\n\r\x1b") {
			t.Fatalf("the error has more than one line: %q", e.Error())
		}
	})
}
