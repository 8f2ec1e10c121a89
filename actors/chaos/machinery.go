package chaos

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/acpod/acpod/actors/chaos/fault"
	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/machine"
	"github.com/acpod/acpod/actors/chaos/pod"
	"github.com/acpod/acpod/actors/chaos/watch"
)

// machinery is the pod whose machine is attacked: its disk, its clock. Few use it, because what happens to it happens to all of them.
type machinery struct {
	pod  *pod.Pod
	disk *machine.Disk
}

// The clients of that pod. Its numbers are far from the others'.
const (
	machineExtensions = 4
	machineRate       = 5.0
	machineFirst      = 1 << 28
)

// roomyAudit is how long the audit file may become, in bytes, before it is emptied: the disk is small.
const roomyAudit = 64 << 10

var machineFaults = []string{"clock", "enospc", "readonly"}

// startMachine starts that pod when a fault needs it.
func (r *run) startMachine(ctx context.Context) error {
	wanted := false
	for _, name := range machineFaults {
		wanted = wanted || r.faults.On(name)
	}
	if !wanted {
		return nil
	}
	dir, err := r.folder("d")
	if err != nil {
		return err
	}
	m := &machinery{}
	if m.disk, err = machine.NewDisk(dir); err != nil {
		return err
	}
	binary, err := m.disk.Wrap(r.o.Binary, false)
	if err != nil {
		return err
	}
	place := m.disk.Place()
	m.pod, err = pod.Start(ctx, pod.Spec{
		Binary: binary, Dir: dir, Env: goEnvironment(), TOML: config(machineExtensions, machineExtensions, "", place.Audit, place.State),
	})
	if err != nil {
		return err
	}
	m.disk.Bind(m.pod.PID())
	m.pod.OnLog(watch.Lines{Book: r.book, Secrets: r.secrets, JSON: true, Where: "log of pod d"}.Judge)
	state := r.watchOver(m.pod, "d")
	r.machine = m
	r.arenas = append(r.arenas, r.newArena(arena{
		pod: m.pod, state: state, limits: ownLimits, extensions: machineExtensions, sessions: machineExtensions, rate: machineRate, first: machineFirst,
		keyed: 0.5, // their records are what a full disk refuses
	}))
	return nil
}

// assail does each fault of the machine once, at times spread over the run, and again as their rates have it.
func (m *machinery) assail(attack context.Context, r *run) {
	var due []string
	for _, name := range machineFaults {
		if r.faults.On(name) {
			due = append(due, name)
		}
	}
	pause := r.o.Duration / time.Duration(len(due)+1)
	next := time.Now().Add(pause / 2)
	for second := 0; attack.Err() == nil; second++ {
		dice := r.dice.Of("machine", 0, second)
		name := r.faults.Draw(dice, fault.Machine)
		if len(due) > 0 {
			name = ""
			if time.Now().After(next) {
				name, due = due[0], due[1:]
				next = next.Add(pause)
			}
		}
		if name != "" {
			if err := m.inflict(attack, r, name, time.Duration(500+dice.IntN(2500))*time.Millisecond); err != nil {
				r.faults.Skip(name, err.Error())
			}
		}
		r.judgeAudit(m)
		wait(attack, time.Second)
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// inflict does one fault for a while. What was done is undone also when the attack ends meanwhile.
func (m *machinery) inflict(attack context.Context, r *run, name string, d time.Duration) error {
	var do, undo func() error
	full, readonly, why := m.disk.Supported()
	variant := "disk"
	switch name {
	case "clock":
		r.faults.Injected(name, "stopped")
		return machine.Jump(attack, m.pod.PID(), d)
	case "enospc":
		do, undo = m.disk.Fill, m.disk.Drain
		if !full {
			variant = "audit file only: " + why
		}
	default:
		do, undo = m.disk.ReadOnly, m.disk.Writable
		if !readonly {
			variant = "audit file only: " + why
		}
	}
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.faults.Injected(name, variant)
	wait(attack, d)
	if err := undo(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.book.Exercise(invariant.Alive)
	return nil
}

// judgeAudit looks for secrets in the audit file, and empties it when it has become long: a line that the full disk has cut is no
// mistake of the pod.
func (r *run) judgeAudit(m *machinery) {
	text, err := m.disk.Audit()
	if err != nil || len(text) < roomyAudit {
		return
	}
	r.secrets.Look("audit of pod d", text)
	if path := fmt.Sprintf("/proc/%d/root%s", m.pod.PID(), m.disk.Place().Audit); os.Truncate(path, 0) != nil {
		r.doings.Count("audit_not_emptied")
	}
}
