package pod

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/acpod/acpod/actors/pod/config"
)

func TestAgentGetsNothingThatNobodyGave(t *testing.T) {
	own := []string{"HOME=/h", "PATH=/p", "USER=u", "SECRET=s", "KEEP=k", "OPENAB_SESSION_TOKEN=old", "=odd", "TWICE=1", "TWICE=2"}
	for name, c := range map[string]struct {
		agent config.Agent
		want  []string
	}{
		"only the three":       {config.Agent{}, []string{"HOME=/h", "PATH=/p", "USER=u"}},
		"what is let through":  {config.Agent{InheritEnv: []string{"KEEP", "MISSING"}}, []string{"HOME=/h", "KEEP=k", "PATH=/p", "USER=u"}},
		"what is set is later": {config.Agent{InheritEnv: []string{"KEEP"}, Env: map[string]string{"KEEP": "x", "PATH": "/q"}}, []string{"HOME=/h", "KEEP=x", "PATH=/q", "USER=u"}},
		"the last one counts":  {config.Agent{InheritEnv: []string{"TWICE"}}, []string{"HOME=/h", "PATH=/p", "TWICE=2", "USER=u"}},
	} {
		if got := agentEnv(c.agent, own); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if got := guardianEnv(own); !slices.Equal(got, []string{"HOME=/h", "PATH=/p", "USER=u"}) {
		t.Errorf("guardian: %v", got)
	}
}

func TestAgentCommandIsResolvedOnce(t *testing.T) {
	here, err := filepath.Abs("x/agent")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ in, want []string }{
		{[]string{"acpod", "agent", "demo"}, []string{"/bin/this", "agent", "demo"}},
		{[]string{"claude", "acpod"}, []string{"claude", "acpod"}},
		{[]string{"x/agent"}, []string{here}},
		{[]string{"/opt/acpod"}, []string{"/opt/acpod"}},
	} {
		if got := agentCommand(c.in, "/bin/this"); !slices.Equal(got, c.want) {
			t.Errorf("%v became %v", c.in, got)
		}
	}
}

func TestStateFolder(t *testing.T) {
	for _, c := range []struct {
		dir, want string
		environ   []string
	}{
		{"/given", "/given", []string{"XDG_STATE_HOME=/x", "HOME=/h"}},
		{"", "/x/acpod", []string{"HOME=/h", "XDG_STATE_HOME=/x"}},
		{"", "/h/.local/state/acpod", []string{"XDG_STATE_HOME=relative", "HOME=/h"}},
		{"", "", nil},
	} {
		if got := stateDir(config.State{Dir: c.dir}, c.environ); got != c.want {
			t.Errorf("%v: %q, want %q", c, got, c.want)
		}
	}
}
