package capability

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func schemaNamed(i int) []byte {
	return fmt.Appendf(nil, `{"type":"object","required":["p%d"],"properties":{"p%d":{"type":"string"}}}`, i, i)
}

// kept tells whether a schema is there, without using it.
func (s *Schemas) kept(raw []byte) bool { return s.bySum[sha256.Sum256(raw)] != nil }

// TestEqualSchemasAreKeptOnce for all desks, and one that differs by a byte is another. Two compilers may begin with the same one.
func TestEqualSchemasAreKeptOnce(t *testing.T) {
	s := NewSchemas()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for i, args := range []string{`{"p0":"x"}`, `{"p1":"x"}`} {
				if unchecked, err := s.Check(testContext, nil, schemaNamed(i), []byte(args)); unchecked != "" || err != nil {
					t.Errorf("%d: %q, %v", i, unchecked, err)
				}
				if _, err := s.Check(testContext, nil, schemaNamed(1-i), []byte(args)); err == nil {
					t.Errorf("%d: another's schema was asked", i)
				}
			}
		})
	}
	all.Wait()
	if got := s.Stats(); got.Compiled > 2*Compiles || got.Kept != 2 || got.Bytes <= 2*keptBytes {
		t.Errorf("%+v", got)
	}
}

// TestSchemasStayWithinTheirBytes: the one used longest ago goes, one that is in use stays, and what is too large is not kept.
func TestSchemasStayWithinTheirBytes(t *testing.T) {
	one := CompileSchema(schemaNamed(0)).cost.bytes + keptBytes
	s := newSchemas(3*one + one/2)
	check := func(i int) {
		t.Helper()
		if _, err := s.Check(testContext, nil, schemaNamed(i), fmt.Appendf(nil, `{"p%d":"x"}`, i)); err != nil {
			t.Fatal(err)
		}
		if s.bytes > s.limit || int64(len(s.bySum)) != int64(s.order.Len()) {
			t.Fatalf("%d of %d bytes, %d in the table, %d in order", s.bytes, s.limit, len(s.bySum), s.order.Len())
		}
	}
	for i := range 3 {
		check(i)
	}
	check(0)
	check(3)
	if !s.kept(schemaNamed(0)) || s.kept(schemaNamed(1)) || !s.kept(schemaNamed(2)) || !s.kept(schemaNamed(3)) {
		t.Error("not the one used longest ago went")
	}
	used := s.use(sha256.Sum256(schemaNamed(2)))
	for i := 4; i < 9; i++ {
		check(i)
	}
	if !s.kept(schemaNamed(2)) {
		t.Error("one that is in use is not counted any more")
	}
	s.leave(used)
	for i := 9; i < 13; i++ {
		check(i)
	}
	if s.kept(schemaNamed(2)) {
		t.Error("one that nobody uses stays")
	}
	var pins []*keptSchema
	for sum := range s.bySum {
		pins = append(pins, s.use(sum))
	}
	before := s.Stats()
	check(20)
	if after := s.Stats(); after.Bytes != before.Bytes || s.kept(schemaNamed(20)) {
		t.Errorf("all are in use: %+v, then %+v", before, after)
	}
	for _, k := range pins {
		s.leave(k)
	}
	large := []byte(`{"type":"object","properties":{` + strings.Repeat(`"a":{"type":"string"},`, 20) + `"b":{}}}`)
	if _, err := newSchemas(one).Check(testContext, nil, large, []byte(`{}`)); err != nil {
		t.Errorf("one that has no room is not asked: %v", err)
	}
}

// TestWhatHasNoSayIsKeptForLittle: why it has none is told again without compiling it again, and its text is not kept.
func TestWhatHasNoSayIsKeptForLittle(t *testing.T) {
	s := NewSchemas()
	for _, raw := range []string{`{"type":`, `{"$ref":"https://elsewhere.example/x.json"}`, strings.Repeat(" ", maxSchemaBytes+1)} {
		before := s.Stats()
		for range 3 {
			unchecked, err := s.Check(testContext, nil, []byte(raw), []byte(`{}`))
			if unchecked == "" && err == nil {
				t.Errorf("%.30s had a say", raw)
			}
		}
		if after := s.Stats(); after.Compiled != before.Compiled+1 || after.Bytes != before.Bytes+keptBytes {
			t.Errorf("%.30s: %+v, then %+v", raw, before, after)
		}
	}
}

// TestACheckThatIsOverWaitsForNoCompiler: whoever has gone leaves no slot taken.
func TestACheckThatIsOverWaitsForNoCompiler(t *testing.T) {
	for range Compiles {
		compileSlots <- struct{}{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := NewSchemas().Check(ctx, nil, schemaNamed(0), []byte(`{}`)); err != context.Canceled {
		t.Errorf("it ended with %v", err)
	}
	for range Compiles {
		<-compileSlots
	}
	if len(checkSlots) != 0 || len(compileSlots) != 0 {
		t.Errorf("%d checks and %d compilers are taken", len(checkSlots), len(compileSlots))
	}
}

// TestDesksShareWhatWasCompiled and no session's account pays for it.
func TestDesksShareWhatWasCompiled(t *testing.T) {
	shared := NewSchemas()
	for range 2 {
		run(t, DeskConfig{Schemas: shared}, func(w *world) {
			shop := w.attach(newSource("shop", Ready, tools("shop.buy")))
			idle := w.k.Account().Used()
			for range 2 {
				c := w.call(Request{Name: "shop.buy", Arguments: []byte(`{"n":1}`)})
				_, q := shop.next(t)
				w.answer(q, "done")
				c.wait()
			}
			if used := w.k.Account().Used(); used != idle {
				t.Errorf("%d bytes are charged, %d before", used, idle)
			}
		})
	}
	if got := shared.Stats(); got.Compiled != 1 || got.Kept != 1 {
		t.Errorf("%+v", got)
	}
}
