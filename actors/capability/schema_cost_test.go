package capability

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func many(n int, entry string) string {
	return strings.TrimSuffix(strings.Repeat(entry+",", n), ",")
}

func manyNamed(n int, entry string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"p%d":%s`, i, entry)
	}
	return strings.Join(list, ",")
}

// TestACompiledSchemaHoldsNoMoreThanItCosts measures what the cost is made of.
func TestACompiledSchemaHoldsNoMoreThanItCosts(t *testing.T) {
	for name, raw := range map[string]string{
		"subschemas":    `{"allOf":[` + many(2000, `{}`) + `]}`,
		"members":       `{"properties":{` + manyNamed(2000, `{"a":1}`) + `}}`,
		"an enum":       `{"enum":[` + many(20_000, `{}`) + `]}`,
		"a default":     `{"default":[` + many(20_000, `[]`) + `]}`,
		"required":      `{"required":[` + many(16_000, `"a"`) + `]}`,
		"other members": `{` + manyNamed(5000, `[{}]`) + `}`,
		"patterns":      `{"pattern":"` + strings.Repeat(`[a-z]{90}`, 40) + `"}`,
		"a description": `{"description":"` + strings.Repeat("x", 60_000) + `"}`,
	} {
		before := heap()
		s := CompileSchema([]byte(raw))
		held := heap() - before
		if s.unchecked != "" || held > s.cost.bytes+64<<10 {
			t.Errorf("%s: %d bytes held, %d charged, unchecked %q", name, held, s.cost.bytes, s.unchecked)
		}
		runtime.KeepAlive(s)
	}
}

func TestASchemaThatWouldCostTooMuchIsNotCompiled(t *testing.T) {
	for name, raw := range map[string]string{
		"subschemas":        `{"allOf":[` + many(20_000, `{}`) + `]}`,
		"a pattern":         `{"properties":{"a":{"pattern":"` + strings.Repeat(`a{1000}`, 9000) + `"}}}`,
		"nested repetition": `{"properties":{"a":{"pattern":"` + strings.Repeat(`((a{10}){10}){10}`, 200) + `"}}}`,
		"pattern members":   `{"patternProperties":{"^[a-z]{900}[0-9]{900}$":{},"^` + strings.Repeat(`b{999}`, 12) + `":{}}}`,
	} {
		before, begun := heap(), time.Now()
		s := CompileSchema([]byte(raw))
		if held := heap() - before; held > 2<<20 || time.Since(begun) > 20*time.Second {
			t.Errorf("%s: %d bytes held after %v", name, held, time.Since(begun))
		}
		if unchecked, err := s.Check(testContext, nil, []byte(`{"a":"b"}`)); err != nil || unchecked == "" {
			t.Errorf("%s: %q, %v", name, unchecked, err)
		}
		runtime.KeepAlive(s)
	}
}

// TestDecodedArgumentsHoldNoMoreThanIsPaid measures what the price of a token is made of.
func TestDecodedArgumentsHoldNoMoreThanIsPaid(t *testing.T) {
	for name, raw := range map[string]string{
		"objects":          `{"a":[` + many(30_000, `{}`) + `]}`,
		"lists":            `{"a":[` + many(30_000, `[]`) + `]}`,
		"numbers":          `{"a":[` + many(60_000, `1`) + `]}`,
		"objects of one":   `{"a":[` + many(20_000, `{"":1}`) + `]}`,
		"members":          `{` + manyNamed(30_000, `1`) + `}`,
		"one text":         `{"a":"` + strings.Repeat("x", 1<<20) + `"}`,
		"an escaped text":  `{"a":"` + strings.Repeat(`\u0041`, 150_000) + `"}`,
		"broken as UTF-8":  `{"a":"` + strings.Repeat("\xff", 300_000) + `"}`,
		"many short texts": `{"a":[` + many(60_000, `"ab"`) + `]}`,
	} {
		load := weigh([]byte(raw))
		if load.tokens > maxTokens {
			t.Fatalf("%s has %d tokens", name, load.tokens)
		}
		before := heap()
		value, err := decodeArguments([]byte(raw))
		held := heap() - before
		if paid := load.decoded(); err != nil || held > paid+64<<10 {
			t.Errorf("%s: %d bytes held, %d paid (%v)", name, held, paid, err)
		}
		runtime.KeepAlive(value)
	}
}

// TestAJudgementHoldsNoMoreThanIsPaid measures what the price of a step is made of.
func TestAJudgementHoldsNoMoreThanIsPaid(t *testing.T) {
	for name, schema := range map[string]string{
		"one keyword":  `{"type":"string"}`,
		"two keywords": `{"type":"string","enum":["q"]}`,
		"many":         `{"type":"string","enum":["q"],"const":"q","minimum":5,"maximum":-5,"exclusiveMinimum":9,"exclusiveMaximum":-9,"multipleOf":7,"not":{}}`,
		"alternatives": `{"anyOf":[{"type":"string"},{"type":"null"},{"type":"boolean"}],"oneOf":[{"type":"string"},{"const":4}]}`,
		"fitting":      `{"anyOf":[{"type":"integer"},{"type":"null"}]}`,
		"a boolean":    `false`,
	} {
		s := CompileSchema([]byte(`{"properties":{"l":{"items":` + schema + `}}}`))
		value := must(decodeArguments([]byte(`{"l":[` + many(1000, `1`) + `]}`)))
		steps, ok := s.steps(value, 1<<20)
		if !ok || s.compiled == nil {
			t.Fatal(name, s.unchecked)
		}
		before := heap()
		result := s.compiled.ValidateMap(value)
		held := heap() - before
		if paid := int64(bytesPerStep * steps); held > paid {
			t.Errorf("%s: %d bytes held, %d paid for %d steps", name, held, paid, steps)
		}
		runtime.KeepAlive(result)
	}
}

func TestACheckIsPaidForWhileItRuns(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	s := CompileSchema([]byte(`{"properties":{"l":{"items":{"type":"string","minLength":5,"pattern":"x"}}}}`))
	args := []byte(`{"l":[` + many(2000, `"abcd"`) + `]}`)
	steps, ok := s.steps(must(decodeArguments(args)), maxSteps)
	if !ok || steps < 2000 {
		t.Fatalf("%d steps", steps)
	}
	decoded := weigh(args).decoded()
	for _, row := range []struct {
		name  string
		limit int64
		full  bool
	}{
		{"no room for the values", decoded - 1, true},
		{"no room for the judgement", decoded + int64(steps*bytesPerStep) - 1, true},
		{"room for both", decoded + int64(steps*bytesPerStep), false},
	} {
		account := k.Account().Child("session_bytes", row.limit)
		_, err := s.Check(testContext, account, args)
		var full *kernel.Overloaded
		var bad *ArgumentError
		if row.full != errors.As(err, &full) || row.full == errors.As(err, &bad) {
			t.Errorf("%s: %v", row.name, err)
		}
		if account.Used() != 0 {
			t.Errorf("%s: %d bytes are still used", row.name, account.Used())
		}
		account.Close()
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestArgumentsOfTooManyValuesPassUncheckedAndStillSound(t *testing.T) {
	s := CompileSchema([]byte(`{"properties":{"n":{"type":"string"}}}`))
	values := many(70_000, `1`)
	if unchecked, err := s.Check(testContext, nil, []byte(`{"l":[`+values+`],"n":1}`)); err != nil || unchecked == "" {
		t.Errorf("%q, %v", unchecked, err)
	}
	if _, err := s.Check(testContext, nil, []byte(`{"n":"a","l":[`+values+`],"n":"b"}`)); err == nil {
		t.Error("a member that stands twice was let through")
	}
}

// A long text costs more steps the more a pattern has.
func TestALargePatternOnALongTextIsTooMuch(t *testing.T) {
	s := CompileSchema([]byte(`{"properties":{"p":{"pattern":"^([a-m]|[a-z]){0,1000}$"}}}`))
	begun := time.Now()
	unchecked, err := s.Check(testContext, nil, []byte(`{"p":"`+strings.Repeat("a", 1<<20)+`"}`))
	if err != nil || unchecked == "" || time.Since(begun) > 20*time.Second {
		t.Errorf("%q, %v after %v", unchecked, err, time.Since(begun))
	}
}
