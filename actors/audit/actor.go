package audit

import (
	"context"
	"log/slog"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// Config says where records go.
type Config struct {
	// Path of the append-only file; "" = the log.
	Path string
	// Log takes the records when there is no file, and the reports about the file. It is handed each record as it is,
	// whatever level it is set to.
	Log slog.Handler
}

// now stamps the sink's own reports; records bring their time along.
var now = time.Now

// New returns a recorder and the spec of the actor that writes what it takes. The recorder may be given to others before
// the actor is spawned; records wait for it.
func New(cfg Config) (*Recorder, kernel.Spec) {
	r := &Recorder{queue: make(chan queued, QueueRecords)}
	return r, kernel.Spec{
		Name: "audit", Kind: "audit", Restart: kernel.Permanent,
		Scope: "audit_bytes", Limit: QueueRecords*recordBytes + 64<<10,
		New: func() kernel.Behavior { return &actor{cfg: cfg, recorder: r} },
	}
}

type actor struct {
	cfg      Config
	recorder *Recorder
	reported int64
}

// dropping says that records found no room.
type dropping struct{}

// dropTold ends the time in which further drops are only counted.
type dropTold struct{}

// tellEvery is how often a lasting loss of records is told.
const tellEvery = 10 * time.Second

// Start implements kernel.Starter.
func (a *actor) Start(c *kernel.Ctx) error {
	self := c.Self()
	a.recorder.ref.Store(&self)
	sink := &sink{path: a.cfg.Path, log: a.cfg.Log}
	c.Attr("sink", a.where())
	c.Go("write", func(ctx context.Context) kernel.Msg {
		pump(ctx, a.recorder.queue, sink)
		return nil
	})
	return nil
}

// Receive implements kernel.Behavior.
func (a *actor) Receive(c *kernel.Ctx, m kernel.Msg) error {
	switch m.(type) {
	case dropping:
		a.tell(c)
		c.After(tellEvery, dropTold{})
	case dropTold:
		if a.recorder.Dropped() > 0 {
			a.tell(c)
			c.After(tellEvery, dropTold{})
			return nil
		}
		a.recorder.telling.Store(false)
	}
	return nil
}

func (a *actor) tell(c *kernel.Ctx) {
	n := a.recorder.dropped.Swap(0)
	if n == 0 {
		return
	}
	a.reported += n
	c.Attr("dropped", a.reported)
	c.Log().Error("audit records were dropped: the sink is slower than the calls", "records", n, "since_start", a.reported)
}

func (a *actor) where() string {
	if a.cfg.Path == "" {
		return "log"
	}
	return "file"
}

// batch is how many records are written at once at most.
const batch = 256

// pump writes what is queued until ctx ends, and then what is queued still.
func pump(ctx context.Context, queue <-chan queued, sink *sink) {
	defer sink.close()
	records := make([]slog.Record, 0, batch)
	var paid [batch]*kernel.Lease
	for {
		var first queued
		select {
		case first = <-queue:
		case <-ctx.Done():
			select {
			case first = <-queue:
			default:
				return
			}
		}
		records = append(records[:0], record(first.entry))
		paid[0] = first.lease
	gather:
		for len(records) < batch {
			select {
			case next := <-queue:
				paid[len(records)] = next.lease
				records = append(records, record(next.entry))
			default:
				break gather
			}
		}
		settle(sink, records, paid[:len(records)])
	}
}

// settle writes a batch and gives its bytes back, also when a handler panics.
func settle(sink *sink, records []slog.Record, paid []*kernel.Lease) {
	defer func() {
		for i := range paid {
			paid[i].Release()
			paid[i] = nil
		}
	}()
	sink.write(records)
}
