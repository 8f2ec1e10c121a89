//go:build !race

package capability

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// compileCost is what f allocates in all, so at least what it holds at once.
func compileCost(f func()) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

func TestCompilingAStrangersSchemaCostsWhatIsPromised(t *testing.T) {
	fill := func(open, item, close string) string {
		var b strings.Builder
		b.WriteString(open)
		for i := 0; b.Len()+len(item)+len(close)+16 < maxSchemaBytes; i++ {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strings.ReplaceAll(item, "#", fmt.Sprint(i)))
		}
		return b.String() + close
	}
	worst := int64(0)
	for name, schema := range map[string]string{
		"an enum of numbers":       fill(`{"type":"object","properties":{"a":{"enum":[`, `0`, `]}}}`),
		"an enum of empty objects": fill(`{"type":"object","properties":{"a":{"enum":[`, `{}`, `]}}}`),
		"properties":               fill(`{"type":"object","properties":{`, `"#":{}`, `}}`),
		"typed properties":         fill(`{"type":"object","properties":{`, `"#":{"type":"string"}`, `}}`),
		"required":                 fill(`{"type":"object","required":[`, `"#"`, `]}`),
		"patterns":                 fill(`{"type":"object","patternProperties":{`, `"a{1,9}#":{}`, `}}`),
		"one long text":            `{"type":"object","description":"` + strings.Repeat("x", maxSchemaBytes-100) + `"}`,
		"nested":                   strings.Repeat(`{"type":"object","properties":{"a":`, maxSchemaDepth-2) + `{}` + strings.Repeat(`}}`, maxSchemaDepth-2),
	} {
		cost := compileCost(func() { runtime.KeepAlive(CompileSchema([]byte(schema))) })
		t.Logf("%s: %d bytes of schema, %d allocated", name, len(schema), cost)
		if worst = max(worst, cost); cost > CompileBytes {
			t.Errorf("%s costs %d bytes, more than the %d that the worst case counts", name, cost, CompileBytes)
		}
	}
	if worst*8 < CompileBytes {
		t.Errorf("the dearest costs %d bytes; the worst case counts %d, which is absurd", worst, CompileBytes)
	}
}

// TestKeptSchemasCostWhatIsCounted: what the table says is what lives on the heap, for many small ones and for ones that have no say.
func TestKeptSchemasCostWhatIsCounted(t *testing.T) {
	live := func() int64 {
		for range 3 {
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for name, make := range map[string]func(i int) []byte{
		"small":  schemaNamed,
		"no say": func(i int) []byte { return fmt.Appendf(nil, `{"type":%d`, i) },
		"a tool's": func(i int) []byte {
			return fmt.Appendf(nil, `{"type":"object","description":"%d","required":["a"],"properties":{"a":{"type":"string","minLength":1},"b":{"type":"array","items":{"type":"object","properties":{"c":{"enum":["x","y"]}}}}}}`, i)
		},
	} {
		s := newSchemas(4 << 20)
		before := live()
		for i := range 5000 {
			_, _ = s.Check(testContext, nil, make(i), []byte(`{}`))
		}
		cost, counted := live()-before, s.Stats().Bytes
		t.Logf("%s: %d are kept, %d bytes each, counted %d", name, s.Stats().Kept, cost/s.Stats().Kept, counted/s.Stats().Kept)
		if cost > counted*5/4 {
			t.Errorf("%s: %d bytes are held, %d are counted", name, cost, counted)
		}
		runtime.KeepAlive(s)
	}
}

// TestConfiguredServersCostASessionLittle: what twenty thousand desks have in common is there once, before and after their agents have searched.
func TestConfiguredServersCostASessionLittle(t *testing.T) {
	const desks, most = 500, 3 << 10
	var servers []Configured
	for i := range 10 {
		var names []string
		for j := range 50 {
			names = append(names, fmt.Sprintf("tool_%d_%d", i, j))
		}
		servers = append(servers, newServer(fmt.Sprintf("server-%d", i), Ready, tools(names...)))
	}
	live := func() int64 {
		for range 3 {
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	cost := func(roster *Roster, search bool) int64 {
		k := kerneltest.Start(t, kernel.Options{})
		parent, _ := kerneltest.Root(t, k)
		before := live()
		var callers []Caller
		for i := range desks {
			view := new(atomic.Pointer[View])
			desk := kerneltest.Spawn(t, parent, DeskSpec(fmt.Sprint(i), DeskConfig{Tag: fmt.Sprint(i), View: view, Roster: roster, Ledger: newMemoryLedger(), Schemas: NewSchemas()}))
			callers = append(callers, Caller{Desk: desk, View: view, Account: k.Account()})
		}
		for _, who := range callers {
			if !search {
				continue
			}
			text, lease, err := Search(context.Background(), who, Query{Text: "tool"})
			if err != nil || !strings.Contains(string(text), `"total":500`) {
				t.Fatalf("%s %v", text, err)
			}
			lease.Release()
		}
		kerneltest.Eventually(t, "all have published", func() bool {
			return !slices.ContainsFunc(callers, func(c Caller) bool { return c.View.Load() == nil })
		})
		held := (live() - before) / desks
		runtime.KeepAlive(callers)
		return held
	}
	none, rest, searched := cost(nil, false), cost(NewRoster(servers), false), cost(NewRoster(servers), true)
	t.Logf("a desk costs %d bytes without configured servers, %d with ten of fifty tools, %d once it was searched", none, rest, searched)
	if rest-none > most || searched-none > most {
		t.Errorf("ten servers cost a desk %d bytes, and %d once it was searched; %d is the most", rest-none, searched-none, most)
	}
}
