package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// killed is what one client was told of its sessions over the lives of pods that are killed one after the other.
type killed struct {
	t      *testing.T
	dice   *rand.Rand
	config string
	first  *pod            // whose folders all have
	kept   map[string]bool // sessions that there are; false = it was being closed when the pod died: it may be there or not
	opened int             // session/new without an answer: so many more may be there
	told   int             // answers in all
}

// live is one life of a pod, up to a seeded answer and some microseconds.
func (k *killed) live() {
	settings := []setting{}
	if k.first != nil {
		settings = append(settings, after(k.first))
	}
	p := startPod(k.t, k.config, settings...)
	k.first = cmp.Or(k.first, p)
	e := dial(k.t, p)
	e.hello(object{"acpod.dev/client": "the secret of a client"})
	k.judge(p, e)

	work := map[string]string{} // request → the session that it closes, "" = it opens one
	var closing []string
	for session := range k.kept {
		if len(closing) < len(k.kept)/2 {
			closing = append(closing, session)
		}
	}
	before := len(e.answers)
	for range 6 {
		work[e.send("session/new", object{"cwd": "/", "mcpServers": []any{}})] = ""
		if len(closing) > 0 {
			work[e.send("session/close", object{"sessionId": closing[0]})] = closing[0]
			closing = closing[1:]
		}
	}
	moment := k.dice.IntN(len(work))
	pause := time.Duration(k.dice.IntN(3000)) * time.Microsecond
	e.await(fmt.Sprintf("%d answers", moment), func() bool { return len(e.answers)-before >= moment })
	<-time.After(pause)
	p.kill()
	e.await("the end of the connection", func() bool { return e.gone })
	k.opened = 0
	for id, closed := range work {
		answer, answered := e.answers[id]
		var result struct{ SessionID string }
		switch {
		case answered && answer.Error != nil:
			k.t.Errorf("%s", answer.raw)
		case answered && closed != "":
			delete(k.kept, closed)
		case closed != "":
			k.kept[closed] = false
		case !answered:
			k.opened++
		case json.Unmarshal(answer.Result, &result) != nil || result.SessionID == "":
			k.t.Errorf("%s", answer.raw)
		default:
			k.kept[result.SessionID] = true
		}
		if answered {
			k.told++
		}
	}
}

// judge compares what a pod finds with what its predecessors said, and takes all of it up.
func (k *killed) judge(p *pod, e *extension) {
	k.t.Helper()
	there := map[string]bool{}
	for _, session := range e.sessions() {
		there[session] = true
		if _, known := k.kept[session]; !known {
			k.opened--
		}
	}
	if k.opened < 0 {
		k.t.Errorf("%d sessions are there that were closed, or that nobody opened", -k.opened)
	}
	for session, sure := range k.kept {
		if sure && !there[session] {
			k.t.Errorf("%s is lost", session)
		}
	}
	for session := range there {
		e.resume(session)
	}
	k.kept = there
	for _, pattern := range []string{"*.tmp", "*.json.*"} {
		if left, err := filepath.Glob(filepath.Join(k.first.home, ".local", "state", "acpod", "sessions", pattern)); err != nil || len(left) > 0 {
			k.t.Errorf("left behind: %q, %v", left, err)
		}
	}
	if log := p.log.String(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "session cannot be") {
		k.t.Errorf("%s", log)
	}
}

// A pod is killed in fifty seeded moments in which its client opens and closes sessions: no session of which it was told is lost, none comes
// back that was closed, no record is torn, and the next pod may have them all.
func TestAPodThatIsKilledLosesNoSession(t *testing.T) {
	t.Parallel()
	const chains, lives = 5, 10
	for chain := range chains {
		t.Run(fmt.Sprint(chain), func(t *testing.T) {
			t.Parallel()
			k := &killed{t: t, dice: rand.New(rand.NewPCG(uint64(chain), 50)), config: with(baseConfig, "agent.driver", `"none"`, "acp.playground", "false")}
			for range lives {
				k.live()
				if t.Failed() {
					return
				}
			}
			p := startPod(t, k.config, after(k.first))
			e := dial(t, p)
			e.hello(object{"acpod.dev/client": "the secret of a client"})
			k.judge(p, e)
			if k.told < lives {
				t.Errorf("%d answers in %d lives: the moments are too early", k.told, lives)
			}
		})
	}
}
