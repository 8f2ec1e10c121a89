package chaos

import (
	"bufio"
	"context"
	"encoding/json/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/watch"
)

// stopPatience is how long a pod may take to end after SIGTERM: its drain_timeout of 5 s, and what a busy machine adds.
const stopPatience = 60 * time.Second

// stop ends the pods that the run has started: with status 0, and nothing of them left.
func (r *run) stop() {
	for _, s := range r.states {
		ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
		exit, err := s.Pod.Stop(ctx)
		cancel()
		if s.Pod.PID() == 0 {
			continue
		}
		if exit != 0 || err != nil {
			r.book.Break(invariant.Alive, nil, "pod %s ended with %d (%v) after SIGTERM; the end of its log: %q", s.Name, exit, err, s.Pod.LogTail(8))
		} else {
			r.book.Exercise(invariant.Alive)
		}
		if left := s.Pod.Children(); len(left) > 0 {
			r.book.Break(invariant.BackToBaseline, nil, "pod %s has ended, and %d processes of it live: %v", s.Name, len(left), left)
		} else {
			r.book.Exercise(invariant.BackToBaseline)
		}
		if r.machine != nil && s.Pod == r.machine.pod {
			continue // its disk is gone with it
		}
		r.judgeFile(filepath.Join(s.Pod.Dir(), "audit.jsonl"), "audit of pod "+s.Name)
	}
}

// keep writes what a pod shows at its end beside its log, for whoever looks at a run afterwards.
func (r *run) keep(ctx context.Context, s *watch.State) {
	for file, read := range map[string]func(context.Context) ([]byte, error){
		"metrics.txt": s.Pod.MetricsText, "tree.json": s.Pod.TreeText, "goroutines.txt": s.Pod.Stacks,
	} {
		if text, err := read(ctx); err == nil {
			_ = os.WriteFile(filepath.Join(r.o.Dir, s.Name+"-"+file), text, 0o644)
		}
	}
}

// judgeFile looks at a file of JSON records that a pod has written.
func (r *run) judgeFile(path, where string) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	judge := watch.Lines{Book: r.book, Secrets: r.secrets, JSON: true, Where: where}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		judge.Judge(lines.Text())
	}
}

func (r *run) report() *Report {
	report := &Report{
		Seed: r.o.Seed, Started: r.began, Seconds: r.attack.Seconds(),
		Config:   Settings{r.o.Spawn, r.o.Target, r.o.Extensions, r.o.Sessions, r.o.Duration.String(), r.o.Faults, r.o.Rate, r.o.MemoryFactor},
		Versions: Versions{Chaos: r.o.Version, Pod: podVersion(r.o.Binary), Go: runtime.Version()},
		Calls:    Calls{ByOutcome: r.tally.Ends(), Executed: r.calls.Executed()}, Latency: r.tally.Latency(),
		Bytes:      Bytes{r.traffic.In.Load(), r.traffic.Out.Load(), r.facadeBytes()},
		Invariants: r.book.Verdicts(), Faults: r.faults.Counts(), Doings: r.doings.Ends(),
	}
	report.Calls.Made = report.Latency.N
	if turns := r.turns.Ends(); len(turns) > 0 {
		latency := r.turns.Latency()
		report.Turns, report.TurnTime = turns, &latency
	}
	for _, s := range r.states {
		peak, worst := s.Peak()
		last, was := s.Last(), s.Began()
		report.Pods = append(report.Pods, PodFigures{
			Name: s.Name, PeakRSS: peak, FinalRSS: last.RSS, WorstCase: worst, Goroutines: last.Goroutines, GoroutinesWas: was.Goroutines,
			FDs: last.FDs, FDsWas: was.FDs, Children: last.Children, ChildrenWas: was.Children, CPUSeconds: s.Pod.CPU().Seconds(),
		})
	}
	return report
}

// podVersion is what the binary says of itself, "" when it says nothing.
func podVersion(binary string) string {
	if binary == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	text, err := exec.CommandContext(ctx, binary, "version", "--json").Output()
	var said struct {
		Version string `json:"version"`
		Commit  string `json:"commit"`
	}
	if err != nil || json.Unmarshal(text, &said) != nil {
		return ""
	}
	return said.Version + " " + said.Commit
}

func (r *run) facadeBytes() (n int64) {
	for _, a := range r.arenas {
		n += a.callers.Bytes()
	}
	return n
}
