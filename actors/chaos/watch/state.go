package watch

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/pod"
)

// State watches one pod.
type State struct {
	Pod     *pod.Pod
	Book    *invariant.Book
	Secrets *Secrets
	Name    string // of the pod, for reports
	Factor  float64

	clock func() time.Time // nil = time.Now

	mu       sync.Mutex
	baseline Sample
	last     Sample
	peakRSS  int64
	worst    int64
	balance  streak // of tokens
	astray   streak // of bytes that no account below the pod's has
	overdue  map[string]int
	blind    int
}

// Sample is what was seen at one moment.
type Sample struct {
	RSS, Bytes int64
	Goroutines int
	FDs        int
	Children   int
	Figures    pod.Figures
}

// streak counts how often in a row a difference was seen: figures of one scrape are not of one moment.
type streak struct {
	diff  float64
	n     int
	since time.Time
}

// add enters one more sample.
func (s *streak) add(diff float64, now time.Time) {
	if diff == 0 || diff != s.diff || s.n == 0 {
		*s = streak{diff: diff, since: now}
	}
	s.n++
}

// persistent is how many samples in a row a difference has to last.
const persistent = 4

// homeless is how long bytes may rightly be charged to the pod and to no actor in its tree: a result that outlives its session is its
// reader's for one write of 30 s more (docs/limits.md).
const homeless = 45 * time.Second

// Look takes a sample and checks what holds at each moment.
func (s *State) Look(ctx context.Context) (Sample, error) {
	treeText, err := s.Pod.TreeText(ctx)
	var tree *pod.Node
	if err == nil {
		tree, err = pod.ParseTree(treeText)
	}
	if err != nil {
		return s.unseen(err)
	}
	metricsText, err := s.Pod.MetricsText(ctx)
	if err != nil {
		return s.unseen(err)
	}
	metrics := pod.ParseMetrics(metricsText)
	s.Secrets.Look(s.Name+": /debug/tree", treeText)
	s.Secrets.Look(s.Name+": /metrics", metricsText)
	sample := Sample{
		RSS: metrics.RSS(), Bytes: tree.Pod.BytesUsed, Goroutines: metrics.Goroutines(), FDs: metrics.FDs(), Children: len(s.Pod.Children()), Figures: *tree.Pod,
	}
	s.mu.Lock()
	s.blind = 0
	s.last = sample
	s.worst = tree.Pod.WorstCaseBytes
	s.peakRSS = max(s.peakRSS, sample.RSS, s.Pod.PeakRSS())
	rss, bound := s.peakRSS, int64(float64(s.worst)*s.Factor)
	s.mu.Unlock()
	s.text(treeText)
	s.memory(rss, bound)
	s.accounts(tree)
	s.equality(tree, homeless)
	s.tokens(metrics)
	s.crashes(metrics)
	return sample, nil
}

func (s *State) now() time.Time {
	if s.clock != nil {
		return s.clock()
	}
	return time.Now()
}

// unseen counts samples that could not be taken: one may fail on a busy machine; a pod that shows nothing for long is not alive.
func (s *State) unseen(err error) (Sample, error) {
	s.mu.Lock()
	s.blind++
	blind := s.blind
	s.mu.Unlock()
	if blind == persistent {
		s.Book.Break(invariant.Alive, nil, "%s: tree and metrics could not be read %d times in a row: %v", s.Name, blind, err)
	}
	return Sample{}, err
}

// text looks for what peers wrote in the tree, once it is decoded: whoever shows it shows no control characters.
func (s *State) text(tree []byte) {
	var shown map[string]any
	if err := json.Unmarshal(tree, &shown); err != nil {
		return // it was read before, into what it has to be
	}
	s.Book.Check(invariant.LogLines, nil, Lines{Where: s.Name + ": /debug/tree"}.wrongValue("", shown))
}

func (s *State) memory(rss, bound int64) {
	if bound <= 0 || rss == 0 {
		return
	}
	if rss > bound {
		s.Book.Break(invariant.Memory, nil, "%s: %d MiB were resident, more than the worst case of %d MiB", s.Name, rss>>20, bound>>20)
		return
	}
	s.Book.Exercise(invariant.Memory)
}

// accounts checks that no account is over its limit or below zero, and none below what is queued on it for long.
func (s *State) accounts(tree *pod.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	below := map[string]int{}
	tree.Each(func(n *pod.Node) {
		a := n.Account
		switch {
		case a.Used < 0, a.Limit > 0 && a.Used > a.Limit:
			s.Book.Break(invariant.Accounts, []string{n.Path}, "%s: the account of %s reads %d of %d", s.Name, n.Path, a.Used, a.Limit)
		case n.Queue.Bytes > a.Used:
			if below[n.Path] = s.overdue[n.Path] + 1; below[n.Path] == persistent {
				s.Book.Break(invariant.Accounts, []string{n.Path}, "%s: %s has %d bytes queued and %d on its account", s.Name, n.Path, n.Queue.Bytes, a.Used)
			}
		}
	})
	s.overdue = below
	s.Book.Exercise(invariant.Accounts)
}

// tokens compares those minted with those revoked and live.
func (s *State) tokens(m pod.Metrics) {
	if !m.Has("acpod_tokens_minted_total") {
		return
	}
	minted, revoked, live := m.Sum("acpod_tokens_minted_total"), m.Sum("acpod_tokens_revoked_total"), m.Sum("acpod_pod_tokens_live")
	diff := minted - revoked - live
	s.mu.Lock()
	s.balance.add(diff, s.now())
	n := s.balance.n
	s.mu.Unlock()
	switch {
	case diff == 0:
		s.Book.Exercise(invariant.TokensBalance)
	case n == persistent:
		s.Book.Break(invariant.TokensBalance, nil, "%s: %.0f tokens were minted, %.0f revoked, and %.0f are live", s.Name, minted, revoked, live)
	}
}

// crashes looks for ends of the pod's own actors that are no ends of a process.
func (s *State) crashes(m pod.Metrics) {
	for key, n := range m {
		if n == 0 || !strings.HasPrefix(key, "acpod_exits_total{") {
			continue
		}
		if strings.Contains(key, `outcome="crashed"`) && !strings.Contains(key, `kind="agent"`) || strings.Contains(key, `outcome="abandoned"`) {
			s.Book.Break(invariant.Alive, nil, "%s: %s is %.0f", s.Name, key, n)
			return
		}
	}
	s.Book.Exercise(invariant.Alive)
}

// Baseline takes the sample to which the pod has to come back.
func (s *State) Baseline(ctx context.Context) error {
	sample, err := s.Look(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.baseline = sample
	s.mu.Unlock()
	return nil
}

// Last is the newest sample; Peak the largest resident memory so far, and the bound for it.
func (s *State) Last() Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Peak is the largest resident memory that was seen, and the worst case that the pod promises, in bytes.
func (s *State) Peak() (rss, worst int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peakRSS, s.worst
}

// Began is the baseline.
func (s *State) Began() Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.baseline
}

// Slack is by how much a figure may lie over its baseline: connections of ours that have just been closed, and the runtime's own.
type Slack struct{ Goroutines, FDs, Children int }

// Rest waits until the pod is at rest and back at its baseline, at most for patience, and enters what became of it.
func (s *State) Rest(ctx context.Context, patience time.Duration, slack Slack) {
	var unrest, over string
	var tree *pod.Node
	for end := time.Now().Add(patience); ; {
		now, err := s.Pod.Tree(ctx)
		if err == nil {
			tree, unrest = now, now.Unrest()
		} else {
			unrest = err.Error()
		}
		sample, err := s.Look(ctx)
		if err != nil {
			over = err.Error()
		} else {
			over = s.over(sample, slack)
		}
		if unrest == "" && over == "" || time.Now().After(end) || ctx.Err() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	s.Resting(tree, unrest)
	s.Book.Check(invariant.BackToBaseline, nil, over)
	if metrics, err := s.Pod.Metrics(ctx); err == nil && metrics.Has("acpod_mcp_connections_opened_total") {
		opened, closed := metrics.Sum("acpod_mcp_connections_opened_total"), metrics.Sum("acpod_mcp_connections_closed_total")
		why := ""
		if opened != closed {
			why = fmt.Sprintf("%s: %.0f MCP connections were opened and %.0f closed", s.Name, opened, closed)
		}
		s.Book.Check(invariant.DisconnectedOnce, nil, why)
	}
}

// Resting enters whether a pod of which nobody wants anything is at rest; unrest says what it is not, "" when it is. A token that is live
// although there is nobody whose it could be is lost, however the pod counts.
func (s *State) Resting(tree *pod.Node, unrest string) {
	if unrest != "" {
		unrest = s.Name + " does not come to rest: " + unrest
	}
	s.Book.Check(invariant.Accounts, []string{"gateway", "sessions"}, unrest)
	if tree != nil && tree.Pod.Sessions == 0 && tree.Pod.TokensLive != 0 {
		s.Book.Break(invariant.TokensBalance, []string{"sessions"}, "%s: %d tokens are live, and no session", s.Name, tree.Pod.TokensLive)
	}
}

func (s *State) over(now Sample, slack Slack) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.baseline
	switch {
	case now.Goroutines > was.Goroutines+slack.Goroutines:
		return fmt.Sprintf("%s: %d goroutines, %d before", s.Name, now.Goroutines, was.Goroutines)
	case now.FDs > was.FDs+slack.FDs:
		return fmt.Sprintf("%s: %d file descriptors, %d before", s.Name, now.FDs, was.FDs)
	case now.Children > was.Children+slack.Children:
		return fmt.Sprintf("%s: %d child processes, %d before", s.Name, now.Children, was.Children)
	}
	return ""
}
