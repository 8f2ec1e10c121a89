//go:build !race

package capability

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
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
