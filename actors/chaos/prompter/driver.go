package prompter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/acpod/acpod/actors/chaos/agent"
	"github.com/acpod/acpod/actors/chaos/fault"
	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/ledger"
	"github.com/acpod/acpod/actors/chaos/peer"
	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Faults of the table that happen in a turn and are the client's, not the agent's.
const (
	cancelRace = "cancelrace"
	drop       = "drop"
	duplicate  = agent.Duplicate
)

// Chances are the faults of a turn and how probable each is.
type Chances []Chance

// Chance is one of them.
type Chance struct {
	Name string
	Rate float64
}

func (c Chances) draw(rng *rand.Rand) string {
	dice := rng.Float64()
	for _, one := range c {
		if dice < one.Rate {
			return one.Name
		}
		dice -= one.Rate
	}
	return ""
}

// of are the chances of the turn with that place in the run. The first ones have one fault each for certain, so that a short run has
// them all.
func (c Chances) of(place int) Chances {
	if place < len(c) && c[place].Rate > 0 {
		return Chances{{c[place].Name, 1}}
	}
	return c
}

// Config is a run.
type Config struct {
	Sessions int
	Seed     uint64
	Book     *invariant.Book
	Faults   *fault.Set
	Calls    *ledger.Calls // nil = its own
	Traffic  *peer.Traffic // may be nil
	Tally    *ledger.Tally // of turns by their end; may be nil
	Open     func(ctx context.Context, name string) (*wire.Socket, error)
	Folder   string // that Prepare was given
	// Used gives the bytes on the accounts of a session, by its place in the tree, and of its client; nil where that cannot be seen.
	Used     func(ctx context.Context, place string) (int64, bool)
	Canaries []string      // variables of the agents' environment that they print on stderr
	Pace     time.Duration // between two turns of a session; 0 = 100 ms
}

// The files in the folder.
const (
	planFile   = "plan"
	recordsDir = "records"
)

// lineBytes is limits.agent_line_bytes of the pod: small, so that a line over it costs little.
const lineBytes = 1 << 20

// Prepare fills the folder and gives the lines of the pod's config that belong to it: the tables [agent] and what of [limits] the
// agents know about. sessions is how many are open at a time. Beside each there may be agents of its former ones that die slowly and keep
// their places until they are gone: with fewer places an idle session would be suspended for another, rightly, and its next prompt refused.
func Prepare(folder, program string, sessions int) (agentTOML, limitsTOML string, err error) {
	records := filepath.Join(folder, recordsDir)
	if err := makeFolder(records); err != nil {
		return "", "", err
	}
	if err := (agent.Plan{Line: lineBytes, Delay: time.Second}).Write(filepath.Join(folder, planFile)); err != nil {
		return "", "", err
	}
	agentTOML = fmt.Sprintf("command = [%q, \"agent\", \"--plan\", %q, \"--records\", %q]\nmax_sessions = %d\nstart_timeout = \"20s\"\nnew_timeout = \"20s\"\n"+
		"cancel_timeout = \"2s\"\nstop_grace = \"500ms\"\npermission_timeout = \"30s\"\nturn_idle_timeout = \"60s\"\n",
		program, filepath.Join(folder, planFile), records, 4*sessions)
	return agentTOML, fmt.Sprintf("agent_line_bytes = %d\n", lineBytes), nil
}

// Driver drives the sessions of one run.
type Driver struct {
	cfg     Config
	world   World
	chances Chances
	starts  bool // agents may fail before there is a turn
	records agent.Records
	numbers sync.Mutex
	calls   int
}

// New makes a driver. What agents do wrong before a turn goes into their plan here, with half of its rate in turns.
func New(cfg Config) (*Driver, error) {
	if cfg.Calls == nil {
		cfg.Calls = ledger.NewCalls(cfg.Book)
	}
	if cfg.Tally == nil {
		cfg.Tally = ledger.NewTally()
	}
	if cfg.Pace == 0 {
		cfg.Pace = 100 * time.Millisecond
	}
	d := &Driver{cfg: cfg, records: agent.Records{Folder: filepath.Join(cfg.Folder, recordsDir)},
		world: World{Book: cfg.Book, Calls: cfg.Calls, Traffic: cfg.Traffic, Open: cfg.Open}}
	plan := agent.Plan{Seed: cfg.Seed, Line: lineBytes, Delay: time.Second, Secrets: cfg.Canaries}
	for _, c := range cfg.Faults.Counts() {
		rate := min(c.Rate, 0.05)
		known, isAgents := agent.Named(c.Name)
		switch {
		case isAgents:
			for _, stage := range known.Stages {
				if s := (agent.Strike{Fault: c.Name, Stage: stage}); !s.InTurn() && !waits(s) {
					plan.Strikes = append(plan.Strikes, agent.Planned{Strike: s, Rate: rate / 2})
					d.starts = true
				}
			}
		case c.Name != cancelRace && c.Name != drop:
			continue
		}
		d.chances = append(d.chances, Chance{c.Name, rate})
	}
	return d, plan.Write(filepath.Join(cfg.Folder, planFile))
}

// waits tells which strikes end by start_timeout or new_timeout and nothing sooner: they would take more of a run than they are worth,
// and have tests of their own.
func waits(s agent.Strike) bool {
	return s.Fault == agent.Never || s.Fault == agent.Hang && s.Stage != agent.AtEOF
}

// Run opens the sessions and prompts until ctx ends; then it closes them all, and what they left is looked for. The pod must live until
// it returns. The error is one of the harness; what the pod does wrong is in the book.
func (d *Driver) Run(ctx context.Context) error {
	var work sync.WaitGroup
	for number := range d.cfg.Sessions {
		work.Go(func() { d.live(ctx, number) })
	}
	work.Wait()
	return d.leftovers()
}

func (d *Driver) leftovers() error {
	// Each step of a stop has its grace, and a guardian of a loaded machine needs its time.
	patience := time.After(30 * time.Second)
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for waiting := true; waiting; {
		living, err := d.records.Living()
		if err != nil {
			return err
		}
		if len(living) == 0 {
			d.cfg.Book.Exercise(invariant.BackToBaseline)
			break
		}
		select {
		case <-look.C:
		case <-patience:
			waiting = false
			d.cfg.Book.Break(invariant.BackToBaseline, nil, "%d processes of agents live after all sessions were closed, the first is %s %d of group %d",
				len(living), living[0].Role, living[0].PID, living[0].Group)
		}
	}
	struck, err := d.records.Struck()
	for s, n := range struck {
		for range n {
			d.cfg.Faults.Injected(s.Fault, "agent "+s.Stage)
		}
	}
	return err
}

// live is one session after the other of one client.
func (d *Driver) live(ctx context.Context, number int) {
	s := NewSession(d.world, number)
	defer s.HangUp()
	dice := fault.NewDice(d.cfg.Seed)
	for turn := 0; ctx.Err() == nil; turn++ {
		rng := dice.Of("prompter", number, turn)
		if !d.arrive(ctx, s) {
			pause(ctx, time.Second)
			continue
		}
		if s.ID() == "" && !d.open(ctx, s) {
			pause(ctx, d.cfg.Pace)
			continue
		}
		key := fmt.Sprintf("p%d-%d", number, turn)
		d.turn(ctx, s, rng, draw(rng, key, d.number(), d.chances.of(turn*d.cfg.Sessions+number)))
		s.peer.Check(time.Now(), 30*time.Second)
		if rng.IntN(20) == 0 {
			d.close(s)
		}
		pause(ctx, time.Duration(rng.Int64N(int64(2*d.cfg.Pace))))
	}
	d.close(s)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (d *Driver) number() int {
	d.numbers.Lock()
	defer d.numbers.Unlock()
	d.calls++
	return d.calls
}

// open is session/new. It may fail as the plan of the agents has it, and in no other way.
func (d *Driver) open(run context.Context, s *Session) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(run), answerBound) // or a session would be open that nobody closes
	defer cancel()
	err := s.Open(ctx)
	if err == nil {
		if d.cfg.Faults.On(duplicate) { // every agent has given its session the id that the others gave theirs
			d.cfg.Faults.Injected(duplicate, "agent_session")
		}
		return true
	}
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	switch {
	case !ok: // the socket has ended, or the run
	case d.starts && refused.Code == jsonrpc.Internal:
		d.cfg.Tally.Count("open_failed")
	case refused.Code == jsonrpc.Overload:
		d.cfg.Tally.Count("open_refused")
	default:
		d.cfg.Book.Break(invariant.Told, []string{s.peer.Name()}, "%s: session/new was answered %v", s.peer.Name(), err)
	}
	return false
}

// arrive sees to it that the session has a socket: where it has lost one, the next takes the session up.
func (d *Driver) arrive(ctx context.Context, s *Session) bool {
	if s.peer != nil && s.peer.Living() {
		return true
	}
	if s.peer != nil {
		d.cfg.Tally.Count(fmt.Sprintf("socket_closed_%d", s.peer.CloseCode()))
	}
	if s.Connect(ctx) != nil {
		return false
	}
	if s.ID() == "" {
		return true
	}
	_, err := s.Resume(ctx)
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	switch {
	case ok && refused.Code == jsonrpc.InvalidParams: // it was new, and ended with its client
		s.setID("")
	case ok:
		d.cfg.Book.Break(invariant.Told, []string{s.Place(), s.peer.Name()}, "a resume of the client's own session was answered %v", err)
	case err != nil:
		return false
	}
	return true
}

// close ends the session for good, also after the run is over.
func (d *Driver) close(s *Session) {
	if s.ID() == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerBound)
	defer cancel()
	place := s.Place()
	if !d.arrive(ctx, s) || s.ID() == "" {
		return
	}
	if err := s.Close(ctx); err != nil && !errors.Is(err, peer.ErrGone) {
		d.cfg.Book.Break(invariant.Told, []string{place}, "session/close was answered %v", err)
	}
}

// turn is one prompt, to its end.
func (d *Driver) turn(run context.Context, s *Session, rng *rand.Rand, t *Turn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(run), answerBound)
	defer cancel()
	began := time.Now()
	answer := s.Prompt(t)
	var end string
	var err error
	away := t.Drop >= 0
	switch {
	case away:
		pause(ctx, t.Drop)
		d.cfg.Faults.Injected(drop, "in a turn")
		end, err = s.comeBack(ctx, t.Key, rng)
	case t.Unread > 0:
		end, err = d.unread(ctx, s, t, answer)
	case t.Cancel >= 0:
		if t.Cancel > 0 {
			pause(ctx, t.Cancel)
		}
		s.Cancel()
		end, err = s.Wait(ctx, answer)
	default:
		end, err = s.Wait(ctx, answer)
	}
	d.judge(s, t, end, err, away)
	d.cfg.Tally.Add("turn_"+strings.ReplaceAll(end, " ", "_"), time.Since(began))
}

// comeBack leaves in the middle of a turn and resumes it from another socket. It gives the turn's end; "" when the pod has not told one:
// then it never saw the prompt.
func (s *Session) comeBack(ctx context.Context, key string, rng *rand.Rand) (string, error) {
	s.Gaps(key)
	s.peer.Reset()
	pause(ctx, time.Duration(rng.IntN(100))*time.Millisecond)
	if err := s.Connect(ctx); err != nil {
		return "", err
	}
	account, err := s.Resume(ctx)
	if err != nil {
		return "", err
	}
	if account.State == "running" {
		return s.Told(ctx)
	}
	// What was kept of the turn follows the answer of the resume, in the session's stream: it is there when another turn has ended.
	if _, err := s.Wait(ctx, s.Prompt(NewTurn(key+"-behind", agent.Strike{}, 1, 64, 0))); err != nil {
		return "", err
	}
	s.Heard(key+"-behind", false)
	return account.End(), nil
}

// judge compares how a turn ended with how it may.
func (d *Driver) judge(s *Session, t *Turn, end string, err error, away bool) {
	words := []string{s.Place(), s.peer.Name()}
	book := s.Heard(t.Key, away)
	chunks, _ := t.Chunks()
	switch {
	case errors.Is(err, peer.ErrGone):
		return // the socket's end is the answer
	case err != nil:
		d.cfg.Book.Break(invariant.AnsweredOnce, words, "turn %s (%s) did not end: %v", t.Key, t.Strike, err)
		return
	case away: // the last turn that the resume tells may be the one before: the cut may have swallowed the prompt
	case d.starts && (end == AgentExited || end == "agent_timeout" || end == LineTooLong):
		// its agent was a new one, or is one that its former turn had left dying
	case !t.May(end):
		d.cfg.Book.Break(invariant.AnsweredOnce, words, "turn %s (%s, cancelled %v) ended with %q, which may end with %q", t.Key, t.Strike, t.Cancel >= 0, end, t.Ends)
	default:
		d.cfg.Book.Exercise(invariant.AnsweredOnce)
	}
	if end == "end_turn" && !away {
		book.End(chunks)
		book.Filled(t.Fill())
	}
	if wrong := book.Wrong(); len(wrong) > 0 {
		d.cfg.Book.Break(invariant.LastChunk, words, "turn %s (%s) that ended with %q: %s", t.Key, t.Strike, end, strings.Join(wrong, "; "))
	} else {
		d.cfg.Book.Exercise(invariant.LastChunk)
	}
}
