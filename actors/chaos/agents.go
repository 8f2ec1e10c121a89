package chaos

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/acpod/acpod/actors/chaos/fault"
	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/pod"
	"github.com/acpod/acpod/actors/chaos/prompter"
	"github.com/acpod/acpod/actors/chaos/watch"
	"github.com/acpod/acpod/actors/chaos/wire"
)

// environmentCanary is in the environment of every agent, and in no log. An agent with the fault `stderr` prints it.
const environmentCanary = "cnry-environment-9b2e6f7d10"

const canaryName = "CHAOS_CANARY_TOKEN"

// agents is the pod whose sessions have simulated agents, and those who prompt them.
type agents struct {
	pod      *pod.Pod
	folder   string
	sessions int
}

// startAgents starts that pod when a fault needs it, or when there are no faults at all.
func (r *run) startAgents(ctx context.Context) error {
	wanted := r.o.Faults == "none"
	for _, f := range fault.Table() {
		wanted = wanted || slices.Contains(f.Places, fault.Turn) && r.faults.On(f.Name)
	}
	if !wanted {
		return nil
	}
	dir, err := r.folder("a")
	if err != nil {
		return err
	}
	a := &agents{folder: dir, sessions: min(max(r.o.Extensions/20, 4), 12)}
	agentLines, limitLines, err := prompter.Prepare(dir, r.o.Agent, a.sessions)
	if err != nil {
		return err
	}
	a.pod, err = pod.Start(ctx, pod.Spec{
		Binary: r.o.Binary, Dir: dir, Env: goEnvironment(), Args: []string{"--log-format", "text"}, // the others log JSON: a handler of its own
		TOML: fmt.Sprintf("[pod]\ndrain_timeout = \"5s\"\n[acp]\nlisten = \"127.0.0.1:0\"\n[agent]\nenv = { %s = %q, GORACE = \"halt_on_error=1\" }\nsession_ttl = %q\n%s"+
			"[limits]\n%spod_bytes = \"%dB\"\nconnections = 200\nsessions = 200\n[mcp]\nlisten = \"127.0.0.1:0\"\ntunnel_timeout = %q\norphan_window = %q\n"+
			"[audit]\npath = %q\n[state]\ndir = %q\n[debug]\nlisten = \"127.0.0.1:0\"\nflight_bytes = \"4MiB\"\n",
			canaryName, environmentCanary, agentTTL, agentLines, limitLines, podBytes, tunnelTimeout, orphanWindow, filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "state")),
	})
	if err != nil {
		return err
	}
	a.pod.OnLog(watch.Lines{Book: r.book, Secrets: r.secrets, Where: "log of pod a"}.Judge)
	r.watchOver(a.pod, "a")
	r.agents = a
	return nil
}

// agentTTL is how long a session outlives a client that does not come back, in the pod with agents.
const agentTTL = 5 * time.Second

// agentPace is about how long a session waits between two turns.
const agentPace = 50 * time.Millisecond

func (a *agents) driver(r *run, faults *fault.Set) (*prompter.Driver, error) {
	return prompter.New(prompter.Config{
		Sessions: a.sessions, Seed: r.o.Seed, Book: r.book, Faults: faults, Traffic: &r.traffic, Tally: r.turns, Pace: agentPace,
		Open: func(ctx context.Context, _ string) (*wire.Socket, error) {
			return wire.Open(ctx, wire.Dial{URL: a.pod.ACP(), Timeout: patience})
		},
		Folder: a.folder, Canaries: []string{canaryName}, Used: a.pod.Used,
	})
}

// warmUp prompts for a moment without a fault.
func (a *agents) warmUp(ctx context.Context, r *run) error {
	quiet, err := fault.Parse("none")
	if err != nil {
		return err
	}
	driver, err := a.driver(r, quiet)
	if err != nil {
		return err
	}
	brief, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return driver.Run(brief)
}

func (a *agents) assail(attack context.Context, r *run) {
	driver, err := a.driver(r, r.faults)
	if err == nil {
		err = driver.Run(attack)
	}
	if err != nil {
		r.book.Break(invariant.Alive, nil, "the clients of pod a could not go on: %v", err)
	}
}
