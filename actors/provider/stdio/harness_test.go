package stdio

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// bench is a link that runs, and what it told.
type bench struct {
	t       *testing.T
	l       link.Link
	account *kernel.Account
	cancel  context.CancelCauseFunc
	done    chan struct{} // Run has returned
	err     error         // valid then
	log     *kerneltest.Log

	mu      sync.Mutex
	pid     int
	told    []jsonrpc.Frame
	raw     []string
	failed  map[string]error // by id
	refused map[string]int
	down    error
	ended   bool // Run had returned when Down came
	keep    bool // leases are not released
	held    []*kernel.Lease
}

// run starts a link to a child of the test binary. All bytes that it charges must be given back in the end.
func run(t *testing.T, o Options, change ...func(*bench)) *bench {
	b := &bench{t: t, account: kernel.NewAccount("test", 64<<20), done: make(chan struct{}), failed: map[string]error{}, refused: map[string]int{}, log: &kerneltest.Log{}}
	for _, f := range change {
		f(b)
	}
	o.Env = append(o.Env, quick)
	if o.ResultBytes == 0 {
		o.ResultBytes = 1 << 20
	}
	if o.EOFGrace == 0 {
		o.EOFGrace, o.TermGrace = 200*time.Millisecond, 200*time.Millisecond
	}
	o.Log = slog.New(slog.NewTextHandler(b.log, nil))
	b.l = New(o)
	var ctx context.Context
	ctx, b.cancel = context.WithCancelCause(context.Background())
	go func() {
		err := b.l.Run(ctx, b)
		b.mu.Lock()
		b.err, b.ended = err, true
		b.mu.Unlock()
		close(b.done)
	}()
	t.Cleanup(func() {
		b.stop()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, l := range b.held {
			l.Release()
		}
		if n := b.account.Used(); n != 0 {
			t.Errorf("%d bytes are still charged", n)
		}
	})
	return b
}

func (b *bench) stop() {
	b.cancel(kernel.ErrStopped)
	b.wait("the link has ended", func() bool { return b.ended })
}

// wait polls for something under the lock.
func (b *bench) wait(what string, ok func() bool) {
	b.t.Helper()
	kerneltest.Eventually(b.t, what, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return ok()
	})
}

// say sends the child a line.
func (b *bench) say(frame string) {
	b.t.Helper()
	b.wait("it is up", func() bool { return b.pid != 0 })
	if err := b.l.Send(link.Message{Head: []byte(frame)}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) Up(pid int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pid = pid
}

func (b *bench) Message(frame []byte, scanned jsonrpc.Frame, about jsonrpc.ID, lease *kernel.Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if lease.Size() < int64(len(frame)) || !about.IsZero() {
		b.t.Errorf("%d bytes are paid for %d, about %v", lease.Size(), len(frame), about)
	}
	if b.down != nil {
		b.t.Error("a message after the end")
	}
	b.told, b.raw = append(b.told, scanned), append(b.raw, string(frame))
	if b.keep {
		b.held = append(b.held, lease)
		return
	}
	lease.Release()
}

func (b *bench) Failed(id jsonrpc.ID, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed[string(id.Raw())] = err
}

func (b *bench) Account() *kernel.Account { return b.account }

func (b *bench) Refused(scope string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused[scope]++
}

func (b *bench) Down(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended || b.down != nil {
		b.t.Error("told too late, or twice")
	}
	b.down = err
}
