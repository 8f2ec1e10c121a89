package pins

import (
	"context"
	"errors"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// Times of the goroutine that writes.
const (
	gather    = 100 * time.Millisecond // what is pinned together is written together
	lookEvery = 500 * time.Millisecond // for what others wrote: the operator who accepts should not wait
	writeRest = 500 * time.Millisecond // between two writes
	tellEvery = 10 * time.Second       // of a file that cannot be written
)

// Spec describes the actor `pins`.
func (p *Pins) Spec() kernel.Spec {
	return kernel.Spec{Name: "pins", Kind: "pins", Restart: kernel.Permanent, New: func() kernel.Behavior { return &actor{pins: p} }}
}

type actor struct {
	pins  *Pins
	shown figures
}

// figures are what the tree shows.
type figures struct {
	pins, held, refused int64
	doubt, unsaved      bool
}

// show says that the figures changed.
type show struct{ figures }

// Start implements kernel.Starter.
func (a *actor) Start(c *kernel.Ctx) error {
	self := c.Self()
	a.pins.ref.Store(&self)
	switch {
	case a.pins.cfg.Off:
		c.Attr("state", "off")
		return nil
	case a.pins.file == nil:
		c.Attr("state", "memory")
	default:
		c.Attr("state", "file")
	}
	a.shown = figures{pins: -1}
	a.show(c, a.pins.figures(false))
	c.Go("write", func(ctx context.Context) kernel.Msg {
		a.pins.pump(ctx, func(f figures) { _ = self.Signal(show{f}) })
		return nil
	})
	return nil
}

// Receive implements kernel.Behavior.
func (a *actor) Receive(c *kernel.Ctx, m kernel.Msg) error {
	if m, ok := m.(show); ok {
		a.show(c, m.figures)
		return nil
	}
	c.Refuse("message")
	return nil
}

func (a *actor) show(c *kernel.Ctx, f figures) {
	if f == a.shown {
		return
	}
	a.shown = f
	c.Attr("pins", f.pins)
	c.Attr("held", f.held)
	c.Attr("refused", f.refused)
	c.Attr("unreadable", f.doubt)
	c.Attr("unsaved", f.unsaved)
}

func (p *Pins) figures(unsaved bool) figures {
	return figures{p.table.pins.Load(), p.table.held.Load(), p.refused.Load(), p.table.doubt.Load(), unsaved}
}

// pump writes what was pinned, and takes in what others wrote, until ctx ends; then it writes what is left.
func (p *Pins) pump(ctx context.Context, tell func(figures)) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var failed time.Time // when it was last told that the file cannot be written
	var wrote time.Time
	unsaved := false
	var shown figures
	for {
		var woken, looking bool
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockPatience)
			if err := p.sync(last, true); err != nil {
				p.cfg.Log.Error("pins are not saved; a tool that changes before it is pinned again will not be noticed", "cause", err.Error())
			}
			cancel()
			return
		case <-p.wake:
			woken = true
		case <-look.C:
			looking = true
		}
		if woken {
			if !rest(ctx, max(gather, writeRest-time.Since(wrote))) {
				continue
			}
			wrote = time.Now()
		}
		if looking && unsaved && time.Since(failed) < tellEvery {
			continue
		}
		switch err := p.sync(ctx, false); {
		case err != nil && ctx.Err() == nil:
			if unsaved = true; time.Since(failed) >= tellEvery {
				failed = time.Now()
				p.cfg.Log.Error("pins are not saved; it is tried again", "cause", err.Error())
			}
		case err == nil:
			unsaved = false
		}
		if now := p.figures(unsaved); now != shown {
			shown = now
			tell(now)
		}
	}
}

// rest waits; false when ctx ended.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// sync brings table and file together. all: also what waits because it changes all the time.
func (p *Pins) sync(ctx context.Context, all bool) error {
	news, clean := p.table.due(p.cfg.Now().Unix(), all)
	p.report(news)
	if p.file == nil {
		p.table.take()
		return nil
	}
	if clean {
		if !p.file.changed() {
			return nil
		}
		err := p.file.catchUp()
		if bad := (*damage)(nil); !errors.As(err, &bad) {
			return err
		}
	}
	return p.file.sync(ctx)
}

// mostTold is how many tools are told of one by one at a time.
const mostTold = 16

// report tells of tools that are held back since the last time.
func (p *Pins) report(news map[key]struct{}) {
	told := 0
	for k := range news {
		s := p.table.find(k.owner)
		if s == nil {
			continue
		}
		e := s.get(k.tool)
		if e == nil || e.held == nil {
			continue
		}
		if told++; told > mostTold {
			continue
		}
		p.cfg.Log.Warn("a tool is not what it was when it was pinned, and is held back until you accept it", "server", kernel.Escape(k.owner.Server, 64),
			"tool", kernel.Escape(k.tool, 64), "client", k.owner.Scope, "changed", e.changes(), "next", "acpod mcp pins")
	}
	if told > mostTold {
		p.cfg.Log.Warn("more tools are held back", "tools", told-mostTold, "next", "acpod mcp pins")
	}
}
