package jsonrpc

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func parse(t *testing.T, s string) Object {
	t.Helper()
	o, err := ParseObject([]byte(s))
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return o
}

func TestAnEditTouchesNoOtherByte(t *testing.T) {
	const odd = `{ "cwd" :"/x" ,"n":9007199254740993,` + "\n" + ` "s":"\ud800\u003c\/" , "dup":1,"dup":2 }`
	for name, tt := range map[string]struct {
		in    string
		edits []Edit
		want  string
	}{
		"nothing":               {odd, nil, odd},
		"replace":               {odd, []Edit{{"cwd", []byte(`"/y"`)}}, strings.Replace(odd, `"/x"`, `"/y"`, 1)},
		"replace by longer":     {`{"a":1,"b":2}`, []Edit{{"a", []byte(`{"x":[1]}`)}}, `{"a":{"x":[1]},"b":2}`},
		"add":                   {`{"a":1 }`, []Edit{{"b", []byte(`2`)}}, `{"a":1 ,"b":2}`},
		"add to an empty one":   {`{}`, []Edit{{"b", []byte(`2`)}}, `{"b":2}`},
		"add to a spaced one":   {"{\n}", []Edit{{"b", []byte(`2`)}}, "{\n\"b\":2}"},
		"remove the first":      {`{"a":1, "b":2}`, []Edit{{Name: "a"}}, `{ "b":2}`},
		"remove the last":       {`{"a":1, "b":2 }`, []Edit{{Name: "b"}}, `{"a":1}`},
		"remove the only one":   {`{ "a":1 }`, []Edit{{Name: "a"}}, `{}`},
		"remove what is not":    {`{"a":1}`, []Edit{{Name: "b"}}, `{"a":1}`},
		"several at once":       {`{"a":1,"b":2,"c":3}`, []Edit{{"c", []byte("9")}, {Name: "b"}, {"d", []byte("4")}}, `{"a":1,"c":9,"d":4}`},
		"case is part of it":    {`{"A":1}`, []Edit{{"a", []byte("2")}}, `{"A":1,"a":2}`},
		"only the outer object": {`{"x":{"a":1}}`, []Edit{{"a", []byte("2")}}, `{"x":{"a":1},"a":2}`},
		"a name to be escaped":  {`{}`, []Edit{{"a\"\n", []byte("2")}}, `{"a\"\n":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(parse(t, tt.in).Apply(nil, tt.edits...)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestNothingCanBeSmuggledPastAnEdit(t *testing.T) {
	for name, in := range map[string]string{
		"twice":                  `{"mcpServers":[1],"mcpServers":[2]}`,
		"in escapes":             `{"mcp\u0053ervers":[1]}`,
		"plain, then in escapes": `{"mcpServers":[1],"x":0,"mcp\u0053ervers":[2]}`,
		"in escapes, then plain": `{"\u006dcpServers":[1],"mcpServers":[2],"mcpServer\u0073":[3]}`,
	} {
		t.Run(name, func(t *testing.T) {
			set := string(parse(t, in).Set("mcpServers", []byte("[0]")))
			for _, theirs := range []string{"[1]", "[2]", "[3]"} {
				if strings.Contains(set, theirs) {
					t.Errorf("%s is left in %s", theirs, set)
				}
			}
			o := parse(t, set)
			if value, _ := o.Get("mcpServers"); string(value) != "[0]" || o.Unique("mcpServers") != nil {
				t.Errorf("set to %s", set)
			}
			if left := parse(t, string(parse(t, in).Delete("mcpServers"))); left.Has("mcpServers") {
				t.Errorf("deleted, and left %s", left.Raw())
			}
		})
	}
}

func TestARepeatedMemberIsFoundInAnySpelling(t *testing.T) {
	o := parse(t, `{"cwd":1,"x":{"cwd":2},"c\u0077d":3,"y":0,"y":1}`)
	var twice *DuplicateError
	if err := o.Unique("y0", "cwd"); !errors.As(err, &twice) || twice.Name != "cwd" {
		t.Errorf("got %v", err)
	}
	if err := o.Unique("x", "z"); err != nil {
		t.Errorf("x stands once: %v", err)
	}
	if value, _ := o.Get("cwd"); string(value) != "3" {
		t.Errorf("the last one is 3, got %s", value)
	}
}

func TestMembersComeInTheOrderOfTheText(t *testing.T) {
	o := parse(t, ` {"b" : 1, "a":[ 2 ], "\u0063":"x" } `)
	var got []string
	for name, value := range o.Members() {
		got = append(got, name+"="+string(value))
	}
	if want := []string{"b=1", "a=[ 2 ]", `c="x"`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if o.Len() != 3 {
		t.Errorf("%d members", o.Len())
	}
	for name := range o.Members() {
		if name != "b" {
			t.Error("the walk went on")
		}
		break
	}
}

func TestWhatIsNoObjectIsRefused(t *testing.T) {
	for _, s := range []string{"", " ", "null", "[]", `"{}"`, "{", "{}{}", `{"a":1,}`, `{"a" 1}`, `{"a":1]`} {
		if _, err := ParseObject([]byte(s)); !errors.Is(err, ErrNotObject) {
			t.Errorf("%q: %v", s, err)
		}
		if _, err := Elements([]byte(s)); s != "[]" && !errors.Is(err, ErrNotArray) {
			t.Errorf("%q as an array: %v", s, err)
		}
	}
}

func TestTheZeroObjectHasNothingAndCanBeAddedTo(t *testing.T) {
	var o Object
	if o.Has("a") || o.Len() != 0 || o.Unique("a") != nil || o.Raw() != nil {
		t.Error("it has something")
	}
	if got := string(o.Set("a", []byte("1"))); got != `{"a":1}` {
		t.Errorf("got %s", got)
	}
}

func TestATextMemberIsAbsentOrAString(t *testing.T) {
	o := parse(t, `{"s":"\u0041","n":1}`)
	if s, err := o.Text("s"); s != "A" || err != nil {
		t.Errorf("%q, %v", s, err)
	}
	if s, err := o.Text("x"); s != "" || err != nil {
		t.Errorf("%q, %v", s, err)
	}
	if _, err := o.Text("n"); err == nil {
		t.Error("a number is no text")
	}
}

func TestASpanIsWhereTheValueStands(t *testing.T) {
	for _, text := range []string{`{"a":1}`, ` { "x" : {"a":2}, "a" : [3, 4] } `, `{"a":"first","\u0061":"last"}`} {
		o, err := ParseObject([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		from, to, ok := o.Span("a")
		value, _ := o.Get("a")
		if !ok || string(o.Raw()[from:to]) != string(value) {
			t.Errorf("%s: %d to %d, want %s", text, from, to, value)
		}
		if _, _, ok := o.Span("b"); ok {
			t.Errorf("%s: a member that is not there was found", text)
		}
	}
}

// An object of very many members is what it is, and costs no memory for each of them.
func TestManyMembersAreFoundAndNotRemembered(t *testing.T) {
	const n = 100_000
	var b bytes.Buffer
	b.WriteString(`{"first":1`)
	for i := range n {
		fmt.Fprintf(&b, `,"%d":%d`, i, i)
	}
	b.WriteString(` , "twice" : 1,"twice":2,"last":[3] }`)
	text := b.Bytes()
	var o Object
	used := testing.AllocsPerRun(1, func() { o, _ = ParseObject(text) })
	if o.Len() != n+4 || cap(o.members) > 2*indexed || used > 20 {
		t.Fatalf("%d members, room for %d, %v allocations", o.Len(), cap(o.members), used)
	}
	for name, want := range map[string]string{"first": "1", "7": "7", "99999": "99999", "twice": "2", "last": "[3]"} {
		from, to, found := o.Span(name)
		if got, ok := o.Get(name); !ok || string(got) != want || !found || string(text[from:to]) != want {
			t.Errorf("%s is %s, %s", name, got, text[from:to])
		}
	}
	if o.Has("none") || o.Unique("first", "last") != nil || o.Unique("last", "twice") == nil {
		t.Error("what is there, and how often, is not known")
	}
	seen := 0
	for range o.Members() {
		seen++
	}
	edited := o.Apply(nil, Edit{"99999", []byte(`"x"`)}, Edit{"twice", nil}, Edit{"new", []byte("true")})
	want := strings.Replace(string(text), `"99999":99999`, `"99999":"x"`, 1)
	want = strings.Replace(want, ` , "twice" : 1,"twice":2,"last":[3] }`, ` ,"last":[3] ,"new":true}`, 1)
	if seen != n+4 || string(edited) != want {
		t.Errorf("%d members; edited it ends with %s", seen, edited[len(edited)-60:])
	}
}
