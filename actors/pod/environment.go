package pod

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/acpod/acpod/actors/pod/config"
)

// agentEnv is the complete environment of an agent: HOME, PATH and USER of ours, what the operator lets through, what the
// operator sets. The session's token is added where it is minted.
func agentEnv(a config.Agent, environ []string) []string {
	own := map[string]string{}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			own[name] = value
		}
	}
	given := map[string]string{}
	for _, name := range append([]string{"HOME", "PATH", "USER"}, a.InheritEnv...) {
		if value, ok := own[name]; ok {
			given[name] = value
		}
	}
	for name, value := range a.Env {
		given[name] = value
	}
	env := make([]string, 0, len(given))
	for name, value := range given {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// guardianEnv is what the guardian gets: enough to be recognised as ours, and no secret.
func guardianEnv(environ []string) []string {
	env := []string{}
	for _, entry := range environ {
		if name, _, _ := strings.Cut(entry, "="); name == "HOME" || name == "PATH" || name == "USER" {
			env = append(env, entry)
		}
	}
	return env
}

// agentCommand puts this executable where the configuration says "acpod", and makes a relative program independent of the
// session's folder.
func agentCommand(command []string, executable string) []string {
	out := slices.Clone(command)
	switch {
	case len(out) == 0:
	case out[0] == "acpod":
		out[0] = executable
	case strings.ContainsRune(out[0], '/') && !filepath.IsAbs(out[0]):
		if full, err := filepath.Abs(out[0]); err == nil {
			out[0] = full
		}
	}
	return out
}

// isDemo says whether the agent is the one that comes with acpod.
func isDemo(command []string) bool {
	return len(command) >= 3 && command[0] == "acpod" && command[1] == "agent" && command[2] == "demo"
}

// stateDir is state.dir, else $XDG_STATE_HOME/acpod, else ~/.local/state/acpod; "" when nothing says where home is.
func stateDir(s config.State, environ []string) string {
	if s.Dir != "" {
		return s.Dir
	}
	var home string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case name == "XDG_STATE_HOME" && filepath.IsAbs(value):
			return filepath.Join(value, "acpod")
		case name == "HOME":
			home = value
		}
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".local", "state", "acpod")
}
