package capability

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var testContext = context.Background()

func TestArgumentsMustBeOneObject(t *testing.T) {
	s := CompileSchema([]byte(`{}`))
	for args, want := range map[string]string{
		`{}`: "", `{"a":{"b":[1]}}`: "",
		`[1]`: "an array", `"{}"`: "a string", `1`: "a number", `true`: "a boolean", `null`: "null",
		`{"a":1,"a":2}`: "not sound JSON", `{"n":1e999999}`: "not sound JSON", `{"a":{"x":1,"x":1}}`: "not sound JSON",
		strings.Repeat(`{"a":`, 200) + `1` + strings.Repeat(`}`, 200): "deeper",
		`{"lone":"\ud800"}`: "", "{\"raw\":\"\xff\"}": "", `{"n":9007199254740993}`: "",
	} {
		_, err := s.Check(testContext, nil, []byte(args))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.40s: got %v, want %q", args, err, want)
		}
	}
}

func TestEveryFailingPathIsNamedUpToABound(t *testing.T) {
	s := CompileSchema([]byte(`{"type":"object","required":["a","b"],"additionalProperties":false,"properties":{"a":{"type":"string"},"n":{"type":"object","properties":{"x":{"type":"integer","minimum":3},"y":{"enum":["p","q"]}}},"l":{"type":"array","items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}}}}`))
	_, err := s.Check(testContext, nil, []byte(`{"c":1,"n":{"x":1.5,"y":"z"},"l":[{"k":1},{},{"k":"ok"}]}`))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"'a', 'b'", "/n/x: ", "/n/y: ", "/l/0/k: ", "/l/1: ", "/c: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in %q", want, err)
		}
	}
	if strings.Contains(err.Error(), "/a: ") || strings.Contains(err.Error(), "/l/2") || strings.Contains(err.Error(), "properties_mismatch") {
		t.Errorf("more is named than fails: %q", err)
	}
	many := `{"type":"object","additionalProperties":{"type":"string"}}`
	args := map[string]int{}
	for i := range 44 {
		args[fmt.Sprintf("%02d", i)] = 1
	}
	raw, _ := json.Marshal(args)
	_, err = CompileSchema([]byte(many)).Check(testContext, nil, raw)
	if err == nil || strings.Count(err.Error(), ";") != 32 || !strings.HasSuffix(err.Error(), "and 12 more") {
		t.Errorf("not 32 and a number: %v", err)
	}
}

func TestAlternativesAreNotListedOneByOne(t *testing.T) {
	s := CompileSchema([]byte(`{"type":"object","properties":{"b":{"anyOf":[{"type":"string"},{"type":"object","required":["z"]}]}}}`))
	_, err := s.Check(testContext, nil, []byte(`{"b":{"q":1}}`))
	if err == nil || !strings.Contains(err.Error(), "/b: ") || strings.Contains(err.Error(), "'z'") {
		t.Errorf("got %v", err)
	}
}

func TestARefusalIsOneBoundedLineWhateverTheArgumentsAre(t *testing.T) {
	s := CompileSchema([]byte(`{"type":"object","additionalProperties":{"enum":["x"]}}`))
	raw, _ := json.Marshal(map[string]string{"k\n\x1b[31m": strings.Repeat("v\n", 10_000)})
	_, err := s.Check(testContext, nil, raw)
	if err == nil || strings.ContainsAny(err.Error(), "\n\x1b") || len(err.Error()) > 2000 {
		t.Errorf("got %q", err)
	}
}

func TestNothingOutsideOfASchemaIsEverRead(t *testing.T) {
	var hits atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hits.Add(1) }))
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "s.json")
	if err := os.WriteFile(file, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, schema := range []string{
		`{"properties":{"a":{"$ref":"` + srv.URL + `/x"}}}`,
		`{"properties":{"a":{"$ref":"file://` + file + `"}}}`,
		`{"$id":"` + srv.URL + `/","properties":{"a":{"$ref":"other.json"}}}`,
		`{"properties":{"a":{"$dynamicRef":"` + srv.URL + `/x#y"}}}`,
		`{"$schema":"` + srv.URL + `/dialect","type":"object"}`,
		`{"properties":{"a":{"$ref":"#/nowhere"}}}`,
	} {
		s := CompileSchema([]byte(schema))
		_, err := s.Check(testContext, nil, []byte(`{"a":1}`))
		var bad *ArgumentError
		want := "never fetched"
		if strings.Contains(schema, "$schema") {
			want = "dialect"
		}
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a refusal that says so", schema, err)
		}
	}
	if hits.Load() != 0 {
		t.Errorf("%d requests went out", hits.Load())
	}
}

func TestASchemaThatCannotBeJudgedLetsArgumentsPassAndSaysSo(t *testing.T) {
	for what, schema := range map[string]string{
		"look-ahead":   `{"properties":{"p":{"pattern":"^(?=x)"}}}`,
		"odd type":     `{"type":5}`,
		"too large":    `{"description":"` + strings.Repeat("x", maxSchemaBytes) + `"}`,
		"too deep":     strings.Repeat(`{"properties":{"a":`, 100) + `{}` + strings.Repeat(`}}`, 100),
		"doubled keys": `{"type":"object","type":"string"}`,
		"not JSON":     `{`,
	} {
		unchecked, err := CompileSchema([]byte(schema)).Check(testContext, nil, []byte(`{"p":1}`))
		if err != nil || unchecked == "" || strings.Contains(unchecked, "\n") {
			t.Errorf("%s: unchecked %q, error %v", what, unchecked, err)
		}
	}
}

func TestHostileSchemasCostABoundedTime(t *testing.T) {
	for name, args := range map[string]string{
		"doubling": `{}`, "branching recursion": nested(100), "wide anyOf": `{"v":"x"}`, "ref to itself": `{}`, "slow pattern": `{"p":"` + strings.Repeat("a", 200_000) + `b"}`,
	} {
		begun := time.Now()
		_, _ = CompileSchema([]byte(oracleCorpus[name].schema)).Check(testContext, nil, []byte(args))
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
	unchecked, err := CompileSchema([]byte(doubling(22))).Check(testContext, nil, []byte(`{}`))
	if err != nil || unchecked == "" {
		t.Errorf("a schema that doubles 22 times was judged: %q, %v", unchecked, err)
	}
	objects := `{"l":[` + strings.TrimSuffix(strings.Repeat(`{"a":1,"b":[2]},`, 20_000), ",") + `]}`
	if unchecked, _ := CompileSchema([]byte(`{"properties":{"l":{"uniqueItems":true}}}`)).Check(testContext, nil, []byte(objects)); unchecked == "" {
		t.Error("the uniqueness of 20,000 objects was judged")
	}
}

func TestOneSchemaChecksManyArgumentsAtOnce(t *testing.T) {
	s := CompileSchema([]byte(`{"type":"object","patternProperties":{"^a":{"type":"string"},"^b":{"type":"number"}},"properties":{"x":{"type":"string","pattern":"^[a-z]+$"}},"unevaluatedProperties":false}`))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 200 {
				if _, err := s.Check(testContext, nil, []byte(`{"a1":"x","b2":3,"x":"abc"}`)); err != nil {
					t.Error(err)
					return
				}
				if _, err := s.Check(testContext, nil, []byte(`{"a1":1,"c":"q"}`)); err == nil {
					t.Error("accepted")
					return
				}
			}
		})
	}
	group.Wait()
}

func TestSchemasWithOneIDDoNotStandForEachOther(t *testing.T) {
	a := CompileSchema([]byte(`{"$id":"https://x.example/args.json","type":"object","required":["a"]}`))
	b := CompileSchema([]byte(`{"$id":"https://x.example/args.json","type":"object","required":["b"]}`))
	if _, err := a.Check(testContext, nil, []byte(`{"a":1}`)); err != nil {
		t.Error(err)
	}
	if _, err := b.Check(testContext, nil, []byte(`{"a":1}`)); err == nil {
		t.Error("the second schema took what only the first takes")
	}
}

func TestACheckEndsWithItsContext(t *testing.T) {
	for range cap(checkSlots) {
		checkSlots <- struct{}{}
	}
	defer func() {
		for range cap(checkSlots) {
			<-checkSlots
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := CompileSchema([]byte(`{}`)).Check(ctx, nil, []byte(`{}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func FuzzSchemaAndArguments(f *testing.F) {
	for _, j := range oracleCorpus {
		for _, args := range j.args {
			if len(j.schema) < 2000 && len(args) < 2000 {
				f.Add([]byte(j.schema), []byte(args))
			}
		}
	}
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		if len(schema) > 4096 || len(args) > 4096 {
			return
		}
		begun := time.Now()
		_, err := CompileSchema(schema).Check(testContext, nil, args)
		if err != nil && strings.ContainsAny(err.Error(), "\n\r\x00") {
			t.Errorf("not one line: %q", err)
		}
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("took %v", took)
		}
	})
}
