package capability

import (
	"encoding/json/v2"
	"errors"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// allocated is what f allocates, in bytes.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// TestALargeTextIsJudgedWhereItLies: of the texts in arguments no copy is made, whatever bounds the schema has for them.
func TestALargeTextIsJudgedWhereItLies(t *testing.T) {
	s := CompileSchema([]byte(`{"type":"object","properties":{"text":{"type":"string","maxLength":2000000},"more":{"type":"array","items":{"type":"string"}}},"required":["text"],"additionalProperties":false}`))
	for name, text := range map[string]string{
		"plain": strings.Repeat("x", 1<<20), "escaped": strings.Repeat(`\n\u00e9`, 1<<17), "of surrogates": strings.Repeat(`\ud83d\ude00`, 80_000),
		"a lone surrogate": `\ud83d` + strings.Repeat("ż", 1<<19), "broken as UTF-8": strings.Repeat("\xff", 1<<20),
	} {
		args := []byte(`{"more":["` + text + `"],"text":"` + text + `"}`)
		var unchecked string
		var err error
		if n := allocated(func() { unchecked, err = s.Check(testContext, nil, args) }); n > 64<<10 {
			t.Errorf("%s: the check of %d bytes allocates %d", name, len(args), n)
		}
		if err != nil || unchecked != "" {
			t.Errorf("%s: %q, %v", name, unchecked, err)
		}
	}
}

// TestReadingInPlaceTakesNoMoreThanIsPaid measures what the prices of names are made of, on schemas that have a say and on one
// that has none.
func TestReadingInPlaceTakesNoMoreThanIsPaid(t *testing.T) {
	open, odd := CompileSchema([]byte(`{"type":"object"}`)), CompileSchema([]byte(`{"type":"object","pattern":"("}`))
	if open.plain == nil || odd.compiled != nil {
		t.Fatal("these schemas are not what the test needs")
	}
	for name, raw := range map[string]string{
		"members":            `{` + manyNamed(30_000, `1`) + `}`,
		"more members":       `{` + manyNamed(60_000, `1`) + `}`,
		"one long name":      `{"` + strings.Repeat("n", 1<<20) + `":1}`,
		"long names":         `{"a":{"` + strings.Repeat("n", 1<<18) + `":1,"` + strings.Repeat("m", 1<<18) + `":1}}`,
		"names unlike UTF-8": `{"` + strings.Repeat("\xff", 1<<18) + `":1}`,
		"many objects":       `{"a":[` + many(20_000, `{"":1}`) + `]}`,
		"a long number":      `{"a":1` + strings.Repeat("0", 300) + `}`,
	} {
		args := []byte(raw)
		paid := weigh(args).inPlace()
		for _, s := range []*Schema{open, odd} {
			n := allocated(func() { _, _, _ = s.checkInPlace(nil, args, weigh(args)) })
			if n > paid+64<<10 {
				t.Errorf("%s: %d bytes allocated, %d paid", name, n, paid)
			}
		}
	}
}

func TestCharactersAreCountedAsTheyAreDecoded(t *testing.T) {
	for _, text := range []string{``, `abc`, `żółć`, `\n\t\"\\`, `\u00e9`, `\ud83d\ude00`, `\ude00\ud83d`, `\ud83d`, `\ud83dx`, `\ud83d\n`, `\ud83d\u0041`,
		`\ud83d\ud83d\ude00`, "\xff\xfe", "a\xc5", `x\ud83d\ude0`, `\u0041\uD83D\uDE00z`} {
		args := []byte(`{"t":"` + text + `"}`)
		value, err := decodeArguments(args)
		if err != nil {
			continue // `\ude0` is no escape
		}
		decoded := value["t"].(string)
		if got, want := characters([]byte(`"`+text+`"`)), utf8.RuneCountInString(decoded); got != want {
			t.Errorf("%s: %d characters, decoded they are %d", text, got, want)
		}
	}
}

// FuzzThePlainForm holds it against a decoder and the validator: what it takes is sound, and fits.
func FuzzThePlainForm(f *testing.F) {
	s := CompileSchema([]byte(`{"type":"object","properties":{"a":{"type":"string","minLength":1,"maxLength":3},"b":{"enum":["x","\u00e9"]},"c":{"type":"integer"},` +
		`"d":{"type":"array","items":{"type":"number"}},"e":{"type":"object","required":["f"]}},"required":["a"],"additionalProperties":false}`))
	if s.plain == nil {
		f.Fatal("the schema has no plain form")
	}
	for _, args := range []string{`{"a":"x"}`, `{"a":"\ud83d\ude00","b":"é","c":1,"d":[1,2.5],"e":{"f":null}}`, `{"a":"x","a":"y"}`, `{"\u0061":"x","a":"y"}`, `{"a":"x","b":"\u00e9"}`,
		`{"a":"x","c":1e999999}`, `{"a":"x","d":[1,]}`, `{"a":"x"} `, `{"a":"x"}{}`, `[]`, `{"a":"\xff"}`, `{"a":"x","e":{"f":{"g":[[]]}}}`} {
		f.Add([]byte(args))
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		if !s.plain.takes(args) {
			return
		}
		value, err := decodeArguments(args)
		if err != nil {
			t.Fatalf("it takes %q, which is %v", args, err)
		}
		if err := s.validate(value); err != nil {
			t.Fatalf("it takes %q: %v", args, err)
		}
	})
}

// TestArgumentsThatNoSchemaJudgesArePaidForToo: a million names are remembered while it is seen that none stands twice.
func TestArgumentsThatNoSchemaJudgesArePaidForToo(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	account := k.Account().Child("session_bytes", 1<<20)
	defer account.Close()
	args := []byte(`{` + manyNamed(60_000, `1`) + `}`)
	var full *kernel.Overloaded
	if _, err := CompileSchema([]byte(`{"pattern":"("}`)).Check(testContext, account, args); !errors.As(err, &full) || account.Used() != 0 {
		t.Errorf("%v, %d bytes used", err, account.Used())
	}
	var value any
	if err := json.Unmarshal(args, &value); err != nil {
		t.Fatal(err)
	}
}
