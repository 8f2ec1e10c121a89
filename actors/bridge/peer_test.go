package bridge

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// helper starts this test binary as a relay, below a shell where lines are given.
func helper(t *testing.T, w *world, shell string, env ...string) (cmd *exec.Cmd, heard func() string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	if shell != "" {
		cmd = exec.Command("/bin/sh", "-c", strings.ReplaceAll(shell, "RELAY", os.Args[0]))
	}
	out, err := os.CreateTemp(t.TempDir(), "out") // a file: nobody waits for a relay that was left behind
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(env, helperSocket+"="+w.socket.Path(), helperSocket+"_SAYS="+request("1", "a"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, func() string {
		text, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

// agents is a registry of processes that the test started.
type agents struct {
	known map[int]Agent
	gate  chan struct{} // closed when known is complete: a relay is faster than a test
}

func (a *agents) find(pid int, start uint64) (Agent, bool) {
	<-a.gate
	agent, ok := a.known[pid]
	if p, err := system(pid); err != nil || p.start != start {
		return Agent{}, false
	}
	return agent, ok
}

func TestARealPeerIsFoundByTheProcessThatItDescendsFrom(t *testing.T) {
	a := &agents{known: map[int]Agent{}, gate: make(chan struct{})}
	w := newWorld(t, func(c *Config) { c.identify, c.Find = nil, a.find })
	agent := func(tag string, token byte) Agent {
		return Agent{Caller: capability.Caller{Tag: tag, Account: w.session, Token: [32]byte{token}}, Session: tag, Ended: w.ended}
	}
	// Each is an agent; what runs below it is its relay. The environment names another agent's session, and is not asked.
	const forged = "OPENAB_BROWSER_CHANNEL=acp_of_another"
	direct, directHeard := helper(t, w, "", forged)
	below, belowHeard := helper(t, w, "(RELAY; true); true", forged)
	// The agent's child leaves a relay behind and ends: it is nobody's.
	orphaned, orphanHeard := helper(t, w, "(sleep 0.2; RELAY) & ", forged)
	stranger, strangerHeard := helper(t, w, "", forged)
	if err := orphaned.Wait(); err != nil {
		t.Fatal(err)
	}
	a.known[direct.Process.Pid], a.known[below.Process.Pid], a.known[orphaned.Process.Pid] = agent("one", 1), agent("two", 2), agent("three", 3)
	close(a.gate)
	_ = stranger.Wait()
	if got := strangerHeard(); !strings.Contains(got, `"id":null,"error":{"code":-32600`) || !strings.Contains(got, "no agent of this pod") {
		t.Errorf("a relay outside of every tree: %q", got)
	}
	kerneltest.Eventually(t, "both are served", func() bool {
		all := w.facade.all()
		return strings.Contains(all, "one ") && strings.Contains(all, "two ")
	})
	kerneltest.Eventually(t, "the orphan is refused", func() bool { return strings.Contains(orphanHeard(), "no agent of this pod") })
	close(w.ended) // the agents end, and with them their relays
	_ = direct.Wait()
	_ = below.Wait()
	if got := directHeard() + belowHeard(); strings.Count(got, `"id":1,"result"`) != 2 {
		t.Errorf("%q", got)
	}
	if got := w.facade.all(); strings.Contains(got, "three") || strings.Count(got, "\n") != 1 {
		t.Errorf("%s", got)
	}
}

func TestAPeerThatHasEndedIsNobodyWhoeverHasItsPidNow(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.identify = func(*net.UnixConn) (Agent, reason) { return Agent{}, noPid } })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: w.socket.Path() + "2", Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{helperSocket + "=" + w.socket.Path() + "2", helperSocket + "_LEAVES=1"}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	conn, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// By the table its pid belongs to a child of an agent now.
	reused := func(int) (process, error) { return process{2, 7}, nil }
	if got, why := agentOfPeer(conn, reused, func(int, uint64) (Agent, bool) { return Agent{Session: "x"}, true }); why != changed {
		t.Errorf("%+v %q", got, why)
	}
}
