package pod

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a program that behaves as a pod does on its command line.
func script(t *testing.T, body string) Spec {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "pod.sh")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	return Spec{Binary: binary, Dir: dir, TOML: "x = 1\n"}
}

const ready = `while [ $# -gt 0 ]; do case $1 in --ready-file) file=$2;; --config) config=$2;; esac; shift; done
echo "read $(cat $config)" >&2
printf '{"public":"127.0.0.1:1","facade":"127.0.0.1:2","debug":""}' >$file.new && mv $file.new $file
`

func TestAPodIsStartedReadAndStopped(t *testing.T) {
	s := script(t, `trap 'echo "last words" >&2; exit 0' TERM
`+ready+`while :; do sleep 0.05; done
`)
	s.Env = []string{"MARK=1"}
	p, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if p.Public() != "127.0.0.1:1" || p.Facade() != "127.0.0.1:2" || p.Debug() != "" || p.PID() == 0 || p.RSS() == 0 || p.FDs() == 0 || p.PeakRSS() < p.RSS() {
		t.Errorf("the pod is %s %s %s %d, %d bytes, %d files", p.Public(), p.Facade(), p.Debug(), p.PID(), p.RSS(), p.FDs())
	}
	exit, err := p.Stop(t.Context())
	if exit != 0 || err != nil {
		t.Errorf("it ended with %d, %v", exit, err)
	}
	if log := strings.Join(p.LogTail(10), "|"); log != "read x = 1|last words" {
		t.Errorf("its log is %q", log)
	}
	if left := p.Children(); len(left) != 0 {
		t.Errorf("of it are left %v", left)
	}
}

func TestAPodThatDoesNotComeUpSaysWhy(t *testing.T) {
	_, err := Start(t.Context(), script(t, "echo 'no such key' >&2; exit 1\n"))
	if err == nil || !strings.Contains(err.Error(), "no such key") || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("the error is %v", err)
	}
}

func TestAPodThatDoesNotStopIsKilledAndItsChildrenAreSeen(t *testing.T) {
	p, err := Start(t.Context(), script(t, "trap '' TERM\n"+ready+"while :; do sleep 0.05; done\n"))
	if err != nil {
		t.Fatal(err)
	}
	seen := false
	for end := time.Now().Add(20 * time.Second); !seen && time.Now().Before(end); {
		seen = len(p.Children()) > 0 // the sleep of the script is a child
	}
	if !seen {
		t.Error("its children are not seen")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if exit, err := p.Stop(ctx); exit != -1 || err == nil {
		t.Errorf("it ended with %d, %v", exit, err)
	}
}

func TestMetricsAreReadByNameAndLabels(t *testing.T) {
	m := ParseMetrics([]byte("# HELP a b\na_total{kind=\"x\",scope=\"y z\"} 2\na_total{kind=\"x2\"} 3\nb 1e+06\nbroken\n"))
	for _, test := range []struct {
		got, want float64
	}{{m.Sum("a_total"), 5}, {m.Sum("a_total", `kind="x"`), 2}, {m.Sum("a_total", `scope="y z"`, `kind="x"`), 2}, {m.Sum("a_total", `kind="z"`), 0}, {m.Sum("b"), 1e6}, {m.Sum("a"), 0}} {
		if test.got != test.want {
			t.Errorf("a sum is %v, want %v", test.got, test.want)
		}
	}
	if !m.Has("a_total") || m.Has("a") || m.Has("broken") {
		t.Error("names are not told apart")
	}
}

func TestATreeAtRestHasNothingInIt(t *testing.T) {
	const rest = `{"path":"pod","children":[{"path":"pod/gateway","children":[]},{"path":"pod/sessions"}],"pod":{}}`
	for text, why := range map[string]string{
		rest: "",
		strings.Replace(rest, `"pod":{}`, `"pod":{"tokens_live":1}`, 1):                                                       "TokensLive:1",
		strings.Replace(rest, `"path":"pod",`, `"path":"pod","account":{"used":5},`, 1):                                       "uses 5 bytes",
		strings.Replace(rest, `"path":"pod",`, `"path":"pod","owes":[{"name":"token"}],`, 1):                                  `owes "token"`,
		strings.Replace(rest, `"children":[]`, `"children":[{"path":"pod/gateway/conn-1"}]`, 1):                               "gateway has 1 children",
		strings.Replace(rest, `{"path":"pod/sessions"}`, `{"path":"pod/sessions","children":[{"path":"pod/sessions/s"}]}`, 1): "sessions has 1 children",
	} {
		tree, err := ParseTree([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := tree.Unrest(); (why == "") != (got == "") || !strings.Contains(got, why) {
			t.Errorf("%s: %q, want %q", text, got, why)
		}
	}
	if _, err := ParseTree([]byte(`{"path":"pod"}`)); err == nil {
		t.Error("a root without the figures of the pod passes")
	}
}

func TestWhatASessionUsesIsAlsoWithItsClient(t *testing.T) {
	root, err := ParseTree([]byte(`{"path":"pod","pod":{},"children":[{"path":"pod/gateway/conn-1","account":{"used":70}},{"path":"pod/gateway/conn-2","account":{"used":9}},
		{"path":"pod/sessions/sess-1","account":{"used":5},"attrs":{"client":"conn-1"}},{"path":"pod/sessions/sess-2","account":{"used":3},"attrs":{"client":""}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for session, want := range map[string]int64{"sess-1": 75, "sess-2": 3, "sess-3": 0} {
		if used, ok := root.used(session); used != want || ok != (want != 0) {
			t.Errorf("%s uses %d (%v), want %d", session, used, ok, want)
		}
	}
}
