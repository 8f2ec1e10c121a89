package agent

import (
	"bytes"
	"context"
	"strings"
	"syscall"
	"time"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// strike does what is armed for a stage, the survivable faults first. t is nil where no session is known yet.
func (a *agent) strike(stage string, t *turn) {
	if s, struck := a.faults.take(stage, Stderr, t); struck {
		a.spill(s.Variant)
	}
	if s, struck := a.faults.take(stage, Garbage, t); struck {
		a.garbage(s.Variant, t)
	}
	if s, struck := a.faults.take(stage, Flood, t); struck {
		a.flood(s.Variant, t)
	}
	if stage == AtPrompt {
		if s, struck := a.faults.take(stage, Oversize, t); struck {
			a.out.line(padded(updateLine(t.session.id, textBody(acp.UpdateAgentThought, Filler(t.key, 64))), a.size(s)))
		}
	}
	if s, struck := a.faults.take(stage, Crash, t); struck {
		a.crash(s)
	}
	if s, struck := a.faults.take(stage, Hang, t); struck {
		a.hang(s.Variant)
	}
}

func (a *agent) crash(s Strike) {
	switch s.Variant {
	case "zero":
		a.opts.Host.Exit(0)
	case "abort":
		a.opts.Host.Kill(syscall.SIGABRT)
	case "kill":
		a.opts.Host.Kill(syscall.SIGKILL)
	default:
		a.opts.Host.Exit(3)
	}
}

// grandchildren is how many processes a hang leaves in the group.
const grandchildren = 2

// hang is the end of everything that this goroutine does; the others never hear of anything again.
func (a *agent) hang(variant string) {
	a.opts.Host.Deafen()
	for range grandchildren {
		if err := a.opts.Host.Fork(variant != "closed"); err != nil {
			_, _ = a.opts.Err.Write([]byte("no grandchild: " + err.Error() + "\n"))
		}
	}
	a.faults.deafen()
	if variant == "closed" {
		a.opts.Host.CloseStdout()
	}
	forever(a.ctx)
}

// forever waits with a timer: a program whose goroutines all wait for nothing is ended by Go's runtime.
func forever(ctx context.Context) {
	for {
		timer := time.NewTimer(time.Hour)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// reply answers a request of the client, unless a fault of this stage has it that way, or not at all, or twice.
func (a *agent) reply(stage string, t *turn, id jsonrpc.ID, result string) {
	line := jsonrpc.AppendResult(nil, id, []byte(result))
	if _, struck := a.faults.take(stage, Never, t); struck {
		return
	}
	if stage == AtAnswer {
		if _, struck := a.faults.take(stage, Hostile, t); struck {
			line = jsonrpc.AppendError(nil, id, &jsonrpc.Error{Code: -32050, Message: hostileText, Data: map[string]string{hostileName: hostileText}})
		}
	}
	if s, struck := a.faults.take(stage, Oversize, t); struck {
		line = padded(line, a.size(s))
	}
	twice := 1
	if _, struck := a.faults.take(stage, Duplicate, t); struck {
		twice = 2
		if stage == AtAnswer {
			again := bytes.Clone(line)
			t.session.again.Store(&again)
		}
	}
	if _, struck := a.faults.take(stage, Late, t); struck {
		timer := time.NewTimer(a.opts.Plan.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-a.ctx.Done():
			return
		}
	}
	for range twice {
		a.out.line(append([]byte(nil), line...))
	}
}

// size is how long an oversized line is, without its newline.
func (a *agent) size(s Strike) int {
	if s.Variant == "exact" {
		return a.opts.Plan.Line
	}
	return a.opts.Plan.Line + 1
}

// The flood of one strike: so many updates of so many bytes.
const (
	floodSmall, smallBytes = 4000, 1 << 10
	floodBig, bigBytes     = 8, 1 << 20
)

// Filler is a piece of a flood: "[KEY ~ …]".
func Filler(key string, size int) string {
	head := "[" + key + " ~ "
	return head + strings.Repeat("~", max(0, size-len(head)-1)) + "]"
}

func (a *agent) flood(variant string, t *turn) {
	count, size := floodSmall, smallBytes
	if variant == "big" {
		count, size = floodBig, bigBytes
	}
	for range count {
		if a.ctx.Err() != nil {
			return
		}
		if t.key == "" { // between two turns
			a.out.update(t.session.id, commandsBody("flood", size))
			continue
		}
		a.out.update(t.session.id, textBody(acp.UpdateAgentThought, Filler(t.key, size)))
	}
}

func commandsBody(name string, size int) string {
	return `{"sessionUpdate":"available_commands_update","availableCommands":[{"name":` + quote(name) + `,"description":"` + strings.Repeat("d", size) + `"}]}`
}

// spillBytes is what one strike writes to standard error: more than the pod keeps of it.
const spillBytes = 256 << 10

func (a *agent) spill(variant string) {
	var text strings.Builder
	switch variant {
	case "endless":
		text.WriteString(strings.Repeat("e", spillBytes))
	case "control":
		for range 64 {
			text.WriteString(hostileText + "\r\x1b[2Jtime=2026-01-01T00:00:00Z level=ERROR msg=" + Forged + "\n")
			text.WriteString(`{"time":"2026-01-01T00:00:00Z","level":"ERROR","msg":"` + Forged + `"}` + "\n\xff\xfe\x00\n")
		}
	case "secrets":
		for _, name := range append([]string{"OPENAB_SESSION_TOKEN"}, a.opts.Plan.Secrets...) {
			value := a.opts.Environ(name)
			if value == "" {
				continue
			}
			text.WriteString(name + "=" + value + "\nAuthorization: Bearer " + value + "\n" + strings.Repeat("x", 4000) + value + "\n" + value[:len(value)/2])
			_, _ = a.opts.Err.Write([]byte(text.String())) // the rest comes in another write
			text.Reset()
			text.WriteString(value[len(value)/2:] + "\n")
		}
	default:
		for text.Len() < spillBytes {
			text.WriteString(strings.Repeat("s", 127) + "\n")
		}
	}
	_, _ = a.opts.Err.Write([]byte(text.String()))
}

// Forged is what a line of the log would say that an agent had forged.
const Forged = "forged-by-the-agent"

const hostileName = "<img src=x onerror=alert(1)>\u202e\x1b[31m"

// hostileText attacks a page, a terminal, a log of lines, and whoever reads from right to left.
const hostileText = "<script>alert('t')</script>&quot;\n\r\x1b]0;owned\x07\x1b[2J\x00\x7f\u0085\u009b31m\u202e\u2066\u2028\u200f\ufeff level=ERROR msg=" + Forged
