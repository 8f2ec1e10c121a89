package capability

import (
	"container/list"
	"context"
	"crypto/sha256"
	"sync"

	"github.com/acpod/acpod/runtime/kernel"
)

const (
	// SchemasBytes is what the compiled schemas may cost that the pod keeps, all together.
	SchemasBytes = 16 << 20
	// largestKept is up to where one is kept.
	largestKept = 2 << 20
	// keptBytes is what a kept one costs beside what it was compiled to: its places in the table and in the order, its frame.
	keptBytes = 512
)

// Schemas are the compiled input schemas of all tools of the pod, by the SHA-256 of their text: what thousands of sessions
// declare alike is compiled once. The pod makes one and hands it to all desks; it belongs to no session, so no account pays
// for it, and its bytes are bounded by themselves. The one used longest ago goes first; it is compiled again when it is
// needed again. A compiled schema says nothing of who declared it, and never changes. All methods are safe from any
// goroutine; the lock is held for a look into a table, never while a schema is compiled or has its say.
type Schemas struct {
	limit int64

	mu       sync.Mutex
	bySum    map[[sha256.Size]byte]*list.Element // of *keptSchema
	order    *list.List                          // used last at the back
	bytes    int64
	compiled int64
}

// keptSchema is one of them. What is in use stays, and stays counted.
type keptSchema struct {
	sum    [sha256.Size]byte
	schema *Schema
	users  int
}

func (k *keptSchema) size() int64 { return k.schema.cost.bytes + keptBytes }

// NewSchemas makes an empty one.
func NewSchemas() *Schemas { return newSchemas(SchemasBytes) }

func newSchemas(limit int64) *Schemas {
	return &Schemas{limit: limit, bySum: map[[sha256.Size]byte]*list.Element{}, order: list.New()}
}

// SchemasStats is what is kept now, and how many were compiled since the start.
type SchemasStats struct{ Kept, Bytes, Compiled int64 }

// Stats is for the tree and the metrics.
func (s *Schemas) Stats() SchemasStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return SchemasStats{Kept: int64(len(s.bySum)), Bytes: s.bytes, Compiled: s.compiled}
}

// Check is [Schema.Check] with the schema of that text. It waits for its turn: a stranger's schema decides how long it
// takes to be compiled, and how long a check with it.
func (s *Schemas) Check(ctx context.Context, account *kernel.Account, raw, args []byte) (unchecked string, err error) {
	if err := sound(args); err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	if found, unchecked, err := s.checkKept(ctx, account, sum, args); found {
		return unchecked, err
	}
	select {
	case compileSlots <- struct{}{}: // until it was used: then it is counted here, or gone
		defer func() { <-compileSlots }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if found, unchecked, err := s.checkKept(ctx, account, sum, args); found { // somebody else was faster
		return unchecked, err
	}
	if err := takeSlot(ctx); err != nil {
		return "", err
	}
	defer giveSlot()
	schema := CompileSchema(raw)
	s.keep(sum, schema)
	return schema.judge(account, args)
}

// checkKept checks with a schema that is there.
func (s *Schemas) checkKept(ctx context.Context, account *kernel.Account, sum [sha256.Size]byte, args []byte) (found bool, unchecked string, err error) {
	k := s.use(sum)
	if k == nil {
		return false, "", nil
	}
	defer s.leave(k)
	if err := takeSlot(ctx); err != nil {
		return true, "", err
	}
	defer giveSlot()
	unchecked, err = k.schema.judge(account, args)
	return true, unchecked, err
}

// use finds a schema that is kept, which stays until leave. nil = it is not there.
func (s *Schemas) use(sum [sha256.Size]byte) *keptSchema {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.bySum[sum]
	if at == nil {
		return nil
	}
	s.order.MoveToBack(at)
	k := at.Value.(*keptSchema)
	k.users++
	return k
}

func (s *Schemas) leave(k *keptSchema) {
	s.mu.Lock()
	k.users--
	s.mu.Unlock()
}

// keep remembers a schema that was compiled, when there is room for it or others can make some.
func (s *Schemas) keep(sum [sha256.Size]byte, schema *Schema) {
	k := &keptSchema{sum: sum, schema: schema}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compiled++
	if s.bySum[sum] != nil || k.size() > min(largestKept, s.limit) {
		return
	}
	for at := s.order.Front(); at != nil && s.bytes+k.size() > s.limit; {
		old, next := at.Value.(*keptSchema), at.Next()
		if old.users == 0 {
			s.order.Remove(at)
			delete(s.bySum, old.sum)
			s.bytes -= old.size()
		}
		at = next
	}
	if s.bytes+k.size() <= s.limit {
		s.bySum[sum] = s.order.PushBack(k)
		s.bytes += k.size()
	}
}

func takeSlot(ctx context.Context) error {
	select {
	case checkSlots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func giveSlot() { <-checkSlots }
