package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// Config is what pod gives. It is a value.
type Config struct {
	Mode        Mode
	Profile     string   // agent.profile: "auto", or the name of one of [Profiles]
	Command     []string // agent.command: tells the agent before it has said its name
	Workdir     string   // agent.workdir, absolute
	State       string   // the state folder; "" = there is none, and a later pod does not know what this one wrote
	FacadeURL   string   // "" = there is no facade: nothing is delivered, and what was is cleaned up
	Bridge      BridgeCommand
	AllowDirect bool // agent.allow_direct
	Log         *slog.Logger
}

// Deliverer prepares what an agent reads before it starts. Its methods are safe from any goroutine; those that take a context may wait for
// a disk, and for each other.
type Deliverer struct {
	cfg    Config
	log    *slog.Logger
	pod    pod
	turn   chan struct{} // has room for one: files and record are worked on by one at a time
	record record
	told   map[string]bool // what was logged of leftovers, so that it is said once
	seen   seen            // files without leftovers
}

// New makes a deliverer; nothing is read or written yet.
func New(cfg Config) *Deliverer {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Deliverer{cfg: cfg, log: cfg.Log, pod: thisPod(), turn: make(chan struct{}, 1), record: record{dir: cfg.State}, told: map[string]bool{}, seen: seen{now: time.Now}}
}

// Mode is what is configured.
func (d *Deliverer) Mode() Mode { return d.cfg.Mode }

// Profile is the row of [Profiles] that holds for an agent; nil = nothing is known but its command.
func (d *Deliverer) Profile(agent *Agent) *Profile {
	name := ""
	if agent != nil {
		name = agent.Name
	}
	return profileOf(d.cfg.Profile, name, d.cfg.Command)
}

// Ask is what one agent is prepared for.
type Ask struct {
	Cwd   string // the session's folder: real, in agent.workdir
	Agent *Agent // nil: nothing is known yet
	URL   string // of the session's proxy; "" in every other mode
}

// State is how far an agent can have tools.
type State string

// The states.
const (
	Ready  State = "ready"  // with a token, it has them
	Off    State = "off"    // there is no facade
	Failed State = "failed" // the delivery could not be set up
	Bypass State = "bypass" // its configuration has a way around the policy
)

// Prepared is what came of it. With any state but Ready the agent gets no token.
type Prepared struct {
	Mode   Mode // what holds for this agent; never Auto
	State  State
	Reason string // one line that says what to do; "" = nothing is to be said
}

// Prepare removes what leads around the policy, cleans up what a former delivery wrote, and writes what this one needs, in this order.
func (d *Deliverer) Prepare(ctx context.Context, ask Ask) Prepared {
	profile := d.Profile(ask.Agent)
	out := Prepared{Mode: choose(d.cfg.Mode, profile, ask.Agent), State: Ready}
	if d.cfg.FacadeURL == "" {
		out.State = Off
	}
	failed := func(format string, args ...any) Prepared {
		if out.State == Ready {
			out.State, out.Reason = Failed, fmt.Sprintf(format, args...)
		}
		return out
	}
	f, leave, err := d.enter(ctx)
	if err != nil {
		return failed("%v", err)
	}
	defer leave()
	cwd, err := filepath.Rel(f.path, ask.Cwd)
	if err != nil || !filepath.IsLocal(cwd) {
		return failed("the session's folder is not in agent.workdir")
	}
	cwd = filepath.ToSlash(cwd)
	if left := d.migrate(ctx, f, between(cwd)); left != nil && out.State == Ready && !d.cfg.AllowDirect {
		out.State, out.Reason = Bypass, left.Error()
	}
	unlock, err := d.record.lock(ctx)
	if err != nil {
		d.log.Error("what was written into agents' configurations is not known", "error", err)
		if d.inFiles(out.Mode, profile) {
			return failed("the state folder: %v; make it writable", plainly(err))
		}
		return out
	}
	defer unlock()
	choice := d.choice(out, profile, f.path)
	d.clean(ctx, choice)
	if out.State != Ready {
		return out
	}
	if err := d.offered(out.Mode, ask.URL); err != nil {
		return failed("%v", err)
	}
	if !d.inFiles(out.Mode, profile) {
		return out
	}
	if out.Reason, err = d.writeAll(ctx, f, profile, out.Mode, cwd, ask.URL, choice); err != nil {
		return failed("%v", err)
	}
	return out
}

// enter waits for its turn and opens agent.workdir; leave ends both.
func (d *Deliverer) enter(ctx context.Context) (f *folder, leave func(), err error) {
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("the delivery was not set up: %w", context.Cause(ctx))
	}
	workdir, err := filepath.EvalSymlinks(d.cfg.Workdir)
	if err == nil {
		f, err = openFolder(workdir)
	}
	if err != nil {
		<-d.turn
		return nil, nil, fmt.Errorf("agent.workdir: %w", plainly(err))
	}
	return f, func() {
		f.close()
		<-d.turn
	}, nil
}

// Migrate removes what leads around the policy in agent.workdir and is provably ours: before any agent starts.
func (d *Deliverer) Migrate(ctx context.Context) {
	f, leave, err := d.enter(ctx)
	if err != nil {
		return // as the first session is told
	}
	defer leave()
	_ = d.migrate(ctx, f, []string{"."}) // as every session is told
}

// Tidy cleans up what a former delivery wrote, when it is known which one holds now.
func (d *Deliverer) Tidy(ctx context.Context, agent *Agent) {
	f, leave, err := d.enter(ctx)
	if err != nil {
		return
	}
	defer leave()
	unlock, err := d.record.lock(ctx)
	if err != nil {
		return
	}
	defer unlock()
	profile := d.Profile(agent)
	out := Prepared{Mode: choose(d.cfg.Mode, profile, agent), State: Ready}
	if d.cfg.FacadeURL == "" {
		out.State = Off
	}
	d.clean(ctx, d.choice(out, profile, f.path))
}

// offered tells what a mode needs and does not have.
func (d *Deliverer) offered(mode Mode, proxy string) error {
	switch {
	case mode == Bridge && d.cfg.Bridge.Socket == "":
		return errNoBridge
	case mode == Proxy && proxy == "":
		return errNoProxy
	}
	return nil
}

var (
	errNoBridge = errors.New("this pod has no socket for the bridge: see agent.bridge_socket")
	errNoProxy  = errors.New("the session's own address could not be opened")
)

// inFiles tells whether a mode stands in the agent's own configuration. The bridge does for agents that do not use the servers of session/new.
func (d *Deliverer) inFiles(mode Mode, p *Profile) bool {
	return mode == File || mode == Proxy || mode == Bridge && !p.Honours
}

// choice is what was chosen, for whoever compares it with what was chosen before: as long as it is the same, what was written stays.
func (d *Deliverer) choice(p Prepared, profile *Profile, workdir string) string {
	parts := []string{string(p.Mode), profile.Name, workdir, d.cfg.FacadeURL}
	switch {
	case p.State == Off || !d.inFiles(p.Mode, profile):
		parts = parts[:2]
	case p.Mode == Bridge:
		parts[3] = d.cfg.Bridge.Program + " " + d.cfg.Bridge.Socket
	case p.Mode == Proxy:
		parts[3] = fmt.Sprint(d.pod) // its addresses end with the process
	}
	return strings.Join(parts, "\n")
}

// clean takes out what was written for another choice, unless a pod that lives relies on it.
func (d *Deliverer) clean(ctx context.Context, choice string) {
	if d.record.aside != nil {
		d.log.Error(d.record.aside.Error())
		d.record.aside = nil
	}
	var former []written
	for _, w := range d.record.list {
		if w.Choice != choice && (w.Pod == d.pod || !w.Pod.lives()) {
			former = append(former, w)
		}
	}
	d.eraseAll(ctx, former, func(w written, err error) {
		d.log.Warn("an entry of a former delivery cannot be removed; it will be tried again", "file", kernel.Escape(w.Path, 200), "entry", w.Name, "error", err)
	})
}

// told says what to do about an error of a file.
func told(err error) error {
	_, own := errors.AsType[*OwnError](err)
	switch {
	case own:
		return err
	case errors.Is(err, errLinkOut):
		return fmt.Errorf("%w: it is not followed; make it a file, or set another agent.delivery", err)
	case errors.Is(err, errNoDocument), errors.Is(err, errTwice), errors.Is(err, errShape), errors.Is(err, errSpoilt):
		return fmt.Errorf("%w; it is left as it is: correct it, or set another agent.delivery", err)
	}
	return fmt.Errorf("cannot be written: %w; mend that, or set another agent.delivery", err)
}

// names are the files of a place for a session in that folder.
func (p *Place) names(f *folder, cwd string) ([]string, error) {
	if p.Workdir {
		cwd = "."
	}
	if p.Each {
		return f.matches(path.Join(cwd, p.Paths[0]))
	}
	for _, name := range p.Paths {
		if _, err := f.root.Lstat(path.Join(cwd, name)); err == nil {
			return []string{path.Join(cwd, name)}, nil
		}
	}
	return []string{path.Join(cwd, p.Paths[0])}, nil
}

// staticEntry tells whether an entry is one of the file that is ours alone: of whichever port.
func staticEntry(value any) bool {
	entry, ok := value.(map[string]any)
	if !ok || len(entry) != 2 {
		return false
	}
	headers, ok := entry["headers"].(map[string]any)
	address, ok2 := entry["url"].(string)
	return ok && ok2 && len(headers) == 1 && headers["Authorization"] == "Bearer ${"+TokenVariable+"}" && loopback(address)
}

// between lists the folders from agent.workdir down to the session's: agents read what stands above their folder, too.
func between(cwd string) []string {
	list := []string{"."}
	for i, c := range cwd {
		if c == '/' {
			list = append(list, cwd[:i])
		}
	}
	if cwd != "." {
		list = append(list, cwd)
	}
	return list
}

// DirectError says which entries keep a session from its tools.
type DirectError struct{ Kept []Leftover }

func (e *DirectError) Error() string {
	first := e.Kept[0]
	more := ""
	if n := len(e.Kept) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("%s%s may lead around the pod's policy: %s; remove it, or set agent.allow_direct = true", kernel.Escape(first.Path, 200), more, kernel.Escape(first.Why, 200))
}

// migrate takes out what is provably ours, and gives what is kept; nil = nothing is.
func (d *Deliverer) migrate(ctx context.Context, f *folder, folders []string) error {
	var kept []Leftover
	for _, l := range leftovers(ctx, f, folders, true, &d.seen) {
		if l.Why == "" {
			d.log.Warn("removed an entry that led around the pod's policy", "file", kernel.Escape(l.Path, 200))
			continue
		}
		kept = append(kept, l)
		if ctx.Err() != nil {
			continue // who asked is gone: what could not be looked at for that reason says nothing about the file, and the next one looks again
		}
		if key := l.Path + "\n" + l.Why; !d.told[key] && len(d.told) < 1000 {
			d.told[key] = true
			d.log.Error("an agent's configuration may lead around the pod's policy", "file", kernel.Escape(l.Path, 200), "why", kernel.Escape(l.Why, 200), "allowed", d.cfg.AllowDirect)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return &DirectError{kept}
}

// Withdraw takes the entries of a proxy out again, those that are still its own. It is for the end of a session.
func (d *Deliverer) Withdraw(ctx context.Context, url string) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return // what stands there is cleaned up by the next pod
	}
	unlock, err := d.record.lock(ctx)
	if err != nil {
		d.log.Warn("the entry of a session's proxy was not removed", "error", err)
		return
	}
	defer unlock()
	var own []written
	for _, w := range d.record.list {
		if w.Proxy == url {
			own = append(own, w)
		}
	}
	d.eraseAll(ctx, own, func(w written, err error) {
		d.log.Warn("the entry of a session's proxy was not removed", "file", kernel.Escape(w.Path, 200), "error", err)
	})
}

var errNoHTTP = errors.New("the agent takes no MCP servers over http (mcpCapabilities.http), and this pod has no socket for the bridge")

// Servers is the mcpServers array of session/new for an agent that was prepared so; nil = none is to stand there.
func (d *Deliverer) Servers(mode Mode, agent Agent, token string) ([]byte, error) {
	profile := d.Profile(&agent)
	switch {
	case mode == ACP && agent.HTTP:
		return profile.httpEntry(d.cfg.FacadeURL, token), nil
	case mode == ACP && d.cfg.Bridge.Socket == "":
		return nil, errNoHTTP
	case mode == ACP, mode == Bridge && profile.Honours:
		return d.cfg.Bridge.stdioEntry(), nil
	}
	return nil, nil
}
