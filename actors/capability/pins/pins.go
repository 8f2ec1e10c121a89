package pins

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
)

// Config is what pins are made of.
type Config struct {
	// Dir is the state folder, which must exist; "" = what is pinned lives as long as the process.
	Dir string
	// Off: nothing is pinned and nothing is held back (mcp.pin = "off"). The file is left alone.
	Off bool
	// Log gets what is held back, and what is wrong with the file; nil = nobody is told.
	Log *slog.Logger
	// Now stamps what is pinned; nil = time.Now.
	Now func() time.Time

	digestBy func(version uint8, t *mcp.Tool) (capability.Digest, bool) // capability.DigestBy
	version  uint8                                                      // capability.DigestVersion
	sum      func(*capability.Tool) [32]byte                            // of the digest by that version
	limit    int64                                                      // half of Bytes
}

// Pins implements capability.Pins for all desks of the pod. Safe from any goroutine; nothing waits for the disk.
type Pins struct {
	cfg   Config
	table *table
	file  *journal // nil: memory only
	wake  chan struct{}
	ref   atomic.Pointer[kernel.Ref]

	refused atomic.Int64 // tools that found no room
}

// New reads what was pinned. It is an error when that cannot be known: another acpod than this one wrote it, or the folder cannot be
// used. A file that is damaged is none: it is moved aside (see the package).
func New(cfg Config) (*Pins, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.digestBy == nil {
		cfg.digestBy, cfg.version, cfg.sum = capability.DigestBy, capability.DigestVersion, (*capability.Tool).Sum
	}
	if cfg.limit == 0 {
		cfg.limit = Bytes / 2
	}
	p := &Pins{cfg: cfg, table: newTable(cfg.limit), wake: make(chan struct{}, 1)}
	if cfg.Dir == "" || cfg.Off {
		return p, nil
	}
	p.file = &journal{dir: cfg.Dir, table: p.table, log: cfg.Log, now: cfg.Now}
	if err := p.file.load(); err != nil {
		return nil, err
	}
	return p, nil
}

// Admit implements capability.Pins.
func (p *Pins) Admit(owner capability.PinOwner, tools []*capability.Tool) {
	if p.cfg.Off || len(tools) == 0 {
		return
	}
	now := p.cfg.Now().Unix()
	if s := p.table.find(owner); s != nil && p.known(s, tools) && now-s.scope.used.Load() < usedEvery {
		return
	}
	if lost := p.admit(owner, tools, now); lost > 0 {
		p.refused.Add(lost)
		if ref := p.actor(); !ref.IsZero() {
			for range lost {
				ref.CountRefusal("pins")
			}
		}
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// usedEvery is how exactly the file knows when a scope was used, in seconds.
const usedEvery = 24 * 60 * 60

// restlessEvery is how often the file is told of a tool that changes all the time, in seconds.
const restlessEvery = 10

// known reports that Admit would change nothing: each tool is as it was pinned, or held back as it is.
func (p *Pins) known(s *shelf, tools []*capability.Tool) bool {
	at := *s.tools.Load()
	for _, tool := range tools {
		e, sum := at[tool.Name], p.cfg.sum(tool)
		switch {
		case e == nil:
			return false
		case e.pinned && e.digest.Version == p.cfg.version && e.sum == sum && e.held == nil:
		case e.held != nil && e.held.sum == sum:
		default:
			return false
		}
	}
	return true
}

// admit is Admit where something may change; it returns how many tools found no room.
func (p *Pins) admit(owner capability.PinOwner, tools []*capability.Tool, now int64) (lost int64) {
	t := p.table
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.shelf(owner, now)
	if s == nil {
		t.crowded.Store(true)
		return int64(len(tools))
	}
	s.scope.used.Store(now)
	if owner.Scope != "" && now-s.scope.told >= usedEvery {
		s.scope.told = now
		t.dirty.scopes[s.scope.name] = struct{}{}
	}
	e := t.edit(owner, s)
	for _, tool := range tools {
		next, op := p.next(e.get(tool.Name), tool, now)
		if next == nil {
			continue
		}
		soon := now-next.noted >= restlessEvery
		if soon && next.held != nil {
			next.noted = now
		}
		if !e.put(tool.Name, next) {
			s.full.Store(true)
			lost++
			continue
		}
		k := key{capability.PinOwner{Scope: s.scope.name, Server: strings.Clone(owner.Server)}, strings.Clone(tool.Name)}
		t.dirty.mark(k, op, soon, now)
		if next.held != nil && soon {
			t.dirty.news[k] = struct{}{}
		}
	}
	e.publish()
	return lost
}

// next is what is known of a tool once it has been seen as it is now, and how that is written; nil when nothing changes.
func (p *Pins) next(was *pin, tool *capability.Tool, now int64) (*pin, string) {
	sum := p.cfg.sum(tool)
	switch {
	case was == nil && p.table.doubt.Load():
		return &pin{at: now, held: p.holding(tool, now)}, opPin
	case was == nil:
		return &pin{digest: p.digest(tool), sum: sum, pinned: true, at: now}, opPin
	case was.held != nil && was.held.sum == sum, was.held == nil && was.pinned && was.sum == sum:
		return nil, ""
	}
	next := *was
	if was.pinned {
		switch changed, comparable := p.compare(was, tool); {
		case comparable && changed == nil:
			next.held = nil
			if was.digest.Version == p.cfg.version {
				return &next, opPin
			}
			next.digest, next.sum = p.digest(tool), sum // by the recipe of today: it is what it was
			return &next, opSet
		}
	}
	next.held = p.holding(tool, now)
	return &next, opPin
}

func (p *Pins) holding(tool *capability.Tool, now int64) *held {
	return &held{digest: p.digest(tool), sum: p.cfg.sum(tool), at: now}
}

func (p *Pins) digest(tool *capability.Tool) capability.Digest {
	d, _ := p.cfg.digestBy(p.cfg.version, &tool.Tool)
	return d
}

// compare tells what of a tool is not as it was pinned, by the recipe that it was pinned by; false when that is not known.
func (p *Pins) compare(was *pin, tool *capability.Tool) (changed []string, comparable bool) {
	now, ok := p.cfg.digestBy(was.digest.Version, &tool.Tool)
	if !ok {
		return nil, false
	}
	return now.Changes(was.digest), true
}

// Changed implements capability.Pins.
func (p *Pins) Changed(owner capability.PinOwner, tool *capability.Tool) []string {
	if p.cfg.Off {
		return nil
	}
	s := p.table.find(owner)
	if s == nil {
		if owner.Scope == "" && p.table.crowded.Load() {
			return []string{capability.PinNoRoom}
		}
		return nil
	}
	was := s.get(tool.Name)
	switch {
	case was == nil && s.full.Load():
		return []string{capability.PinNoRoom}
	case was == nil:
		return nil
	case !was.pinned:
		return []string{capability.PinUnreadable}
	case was.sum == p.cfg.sum(tool):
		return nil
	}
	changed, comparable := p.compare(was, tool)
	if !comparable {
		return []string{capability.PinNewer}
	}
	return changed
}

// actor is the living generation, or the zero Ref before the first has started.
func (p *Pins) actor() kernel.Ref {
	if ref := p.ref.Load(); ref != nil {
		return ref.Current()
	}
	return kernel.Ref{}
}
