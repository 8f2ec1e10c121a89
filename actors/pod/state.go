package pod

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/actors/session/store"
	"github.com/acpod/acpod/runtime/process"
)

// openState makes the state folder and opens what is kept in it. A pod without one runs, says what it cannot do, and refuses that.
func (l *life) openState() {
	dir := stateDir(l.cfg.State, l.opts.Environ)
	if dir == "" {
		l.keys = noLedger{errNoState}
		l.log.Warn("no state folder: neither HOME nor XDG_STATE_HOME is set; calls with an idempotency key are refused, pins and process groups are forgotten with the pod; set state.dir")
		return
	}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		l.ledger, err = openLedger(dir, l.cfg.State.Retention, time.Now)
	}
	if err != nil {
		l.keys = noLedger{err}
		l.log.Warn("the state folder cannot be used: calls with an idempotency key are refused, pins and process groups are forgotten with the pod; set state.dir to a writable folder", "error", err)
		return
	}
	if l.ledger.damaged > 0 {
		l.log.Warn("the record of idempotency keys has lines that cannot be read: a repeat under one of their keys is not known for what it is; the file is kept",
			"lines", l.ledger.damaged, "file", l.ledger.aside)
	}
	l.keys, l.state = l.ledger, dir
}

// openRecords opens the records of sessions. Without a state folder, or in one that cannot be used, they end with the pod.
func (l *life) openRecords() session.Store {
	opts := store.Options{Memory: recordsBytes(l.cfg.Limits), Log: l.log}
	if l.state == "" {
		return store.NewMemory(opts)
	}
	records, err := store.Open(l.state, opts)
	if err != nil {
		l.log.Warn("sessions do not outlive this pod", "error", err)
		return store.NewMemory(opts)
	}
	l.records = records
	return records
}

// closeRecords lets go of the folder, after all who write into it have ended.
func (l *life) closeRecords() {
	if l.records == nil {
		return
	}
	if err := l.records.Close(); err != nil {
		l.log.Warn("the folder of sessions was not closed well", "error", err)
	}
}

// guard ends what an earlier pod left, starts the guardian and makes this process the parent of orphans, before any other child process.
func (l *life) guard() error {
	records := ""
	if l.state != "" {
		records = filepath.Join(l.state, "processes")
		if err := os.MkdirAll(records, 0o700); err != nil {
			return fmt.Errorf("state.dir: %w; make it writable", err)
		}
		swept, err := process.Sweep(records)
		if err != nil {
			l.log.Warn("processes of an earlier pod could not all be ended", "error", err)
		}
		if len(swept) > 0 {
			l.log.Warn("ended processes that an earlier pod had left", "groups", len(swept))
		}
	}
	if !l.opts.FacadeAlone {
		var err error // before any child, which would be where this process was
		if l.cgroups, err = process.OpenCgroups(agentLimits(l.cfg.Agent)); err != nil {
			l.cgroups = nil
			l.log.Warn(noLimits, "error", err)
		}
	}
	guardian, err := process.StartGuardian(process.GuardianOptions{
		Command: []string{l.opts.Executable, "guardian"}, Env: guardianEnv(l.opts.Environ), Records: records, Log: l.log,
	})
	l.guardian = guardian
	if err != nil {
		return err
	}
	if l.parent, err = process.StartParent(guardian, l.log); err != nil {
		l.log.Warn("processes that leave their group may outlive what started them", "error", err)
	}
	return nil
}

const noLimits = "agents run without agent.memory_max, agent.cpu_max and agent.pids_max: this pod may not set cgroup limits; start it in a delegated cgroup (systemd: Delegate=yes) or remove the keys"

// agentLimits are those of one agent.
func agentLimits(a config.Agent) process.Limits {
	processors, _ := strconv.ParseFloat(a.CPUMax, 64) // "" is none; anything else was checked
	return process.Limits{Memory: int64(a.MemoryMax), Processors: processors, Processes: a.PIDsMax}
}
