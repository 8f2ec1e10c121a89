package conform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Defaults of a Config.
const (
	DefaultServer     = "katashiro"
	DefaultPatience   = 10 * time.Second
	DefaultTimeout    = 3 * time.Minute
	DefaultFrameBytes = 8 << 20
	// DefaultRequestBytes is what a pod is held to that does not say what else it takes.
	DefaultRequestBytes = 1 << 20
)

// Config is what a run is told.
type Config struct {
	Target  string   // ws://HOST/acp
	Key     string   // the pod's key; "" when it has none
	Servers []string // names that the pod grants; empty is katashiro
	// Sections are those that are run; empty is all of them.
	Sections []string
	// Patience bounds each wait for something that has to happen; 0 is 10 s.
	Patience time.Duration
	// Timeout bounds the run; what did not get its turn has failed. 0 is 3 minutes.
	Timeout time.Duration
	// FrameBytes is the pod's limits.frame_bytes, which no answer tells; 0 is 8 MiB.
	FrameBytes int
	// RequestBytes is the pod's limits.request_bytes; 0 is what it tells in data.limit, and else 1 MiB.
	RequestBytes int
	// Progress, when set, is told each row as it ends.
	Progress func(Result)
}

// ValidServer reports whether a server may have that name: 1 to 64 of [A-Za-z0-9_-].
func ValidServer(name string) bool { return acp.ValidServerName(name) }

// ErrKeyNeeded says that the pod asks for a key and none was given.
var ErrKeyNeeded = errors.New("the pod asks for a key: give it with --key-file")

// attempt is one row at work.
type attempt struct {
	ctx    context.Context
	cfg    *Config
	survey *survey
	peers  []*peer
	came   string
}

// Run runs all rows against the pod. The error is ErrKeyNeeded; everything else that goes wrong is a row that failed.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	rows := Rows()
	if len(cfg.Sections) > 0 {
		rows = slices.DeleteFunc(rows, func(row Row) bool { return !slices.Contains(cfg.Sections, row.Section) })
	}
	return run(ctx, cfg, rows)
}

func run(ctx context.Context, cfg Config, rows []Row) (*Report, error) {
	begun := time.Now()
	cfg.defaults()
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	report := &Report{Target: cfg.Target, Servers: cfg.Servers}
	found := &survey{cfg: &cfg, names: cfg.Servers}
	entry := cfg.try(ctx, found, Row{Section: "survey", Name: "the pod can be entered", Expected: "101 and an answer to initialize", check: found.enter})
	if found.keyed && cfg.Key == "" {
		return nil, ErrKeyNeeded
	}
	tell := func(one Result) {
		report.Add(one)
		if cfg.Progress != nil {
			cfg.Progress(one)
		}
	}
	tell(entry)
	if entry.Status == Pass {
		found.explore(ctx)
	}
	results := make([]Result, len(rows))
	ready := make([]chan struct{}, len(rows))
	reason := func(row Row) string {
		if entry.Status != Pass {
			return "the pod could not be entered"
		}
		return found.lacks(row.needs)
	}
	for i, row := range rows { // what waits long begins first
		ready[i] = make(chan struct{})
		if !row.beside || reason(row) != "" {
			continue
		}
		go func() {
			defer close(ready[i])
			results[i] = cfg.try(ctx, found, row)
		}()
	}
	for i, row := range rows {
		why := reason(row)
		switch {
		case why != "":
			results[i] = row.result(verdict{status: Skipped, reason: why})
		case row.beside:
			<-ready[i]
		case ctx.Err() != nil:
			results[i] = row.result(verdict{status: Fail, reason: "it did not get its turn: " + overtime(ctx)})
		default:
			results[i] = cfg.try(ctx, found, row)
		}
		tell(results[i])
	}
	report.Pod = found.pod()
	report.Assumed = found.assumed
	report.Millis = time.Since(begun).Milliseconds()
	return report, nil
}

// overtime is why a run is over before its rows are.
func overtime(ctx context.Context) string {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return "the time of the run was over, see --timeout"
	}
	return "the run was stopped"
}

func (c *Config) defaults() {
	if len(c.Servers) == 0 {
		c.Servers = []string{DefaultServer}
	}
	if c.Patience <= 0 {
		c.Patience = DefaultPatience
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.FrameBytes <= 0 {
		c.FrameBytes = DefaultFrameBytes
	}
}

func (r Row) result(v verdict) Result {
	return Result{Section: r.Section, Name: r.Name, Expected: r.Expected, Came: v.came, Status: v.status, Reason: v.reason}
}

// try gives a row its connections, its verdict, and leaves nothing open behind it.
func (c *Config) try(ctx context.Context, found *survey, row Row) Result {
	begun := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &attempt{ctx: ctx, cfg: c, survey: found}
	v := a.judge(row.check)
	if v.status == Pass {
		v = a.judge(func(a *attempt) { a.faultless() })
	}
	a.leave()
	one := row.result(v)
	one.Millis = time.Since(begun).Milliseconds()
	return one
}

// judge runs f and turns its end into a verdict.
func (a *attempt) judge(f func(*attempt)) (v verdict) {
	defer func() {
		switch thrown := recover().(type) {
		case nil:
		case verdict:
			v = thrown
		default:
			panic(thrown)
		}
	}()
	f(a)
	return verdict{status: Pass, came: a.came}
}

// faultless looks at what is watched in every row.
func (a *attempt) faultless() {
	for _, p := range a.peers {
		if len(p.faults) > 0 {
			a.fail(p.faults[0], "besides what the row is about, which held")
		}
	}
}

// leave closes what the row has opened: its sessions too, so that the pod does not keep agents for nobody.
func (a *attempt) leave() {
	for _, p := range a.peers {
		a.judge(func(*attempt) { p.closeSessions() })
		p.hangUp()
	}
}

// explain is the end of an attempt to come in, in words.
func explain(err error) string {
	if refused, ok := errors.AsType[*wire.Refused](err); ok {
		return fmt.Sprintf("HTTP %d", refused.Status)
	}
	if closed, ok := errors.AsType[*wire.Closed](err); ok {
		return fmt.Sprintf("close %d", closed.Code)
	}
	return jsonrpc.Show(err.Error())
}
