package pod

import (
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/pod/config"
)

func TestWarningsNameTheDoorThatIsOpen(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		says  []string
		never string
	}{
		"the default":          {"[mcp]\n", []string{"acp.auth_key is not set", "mcp.anonymous is true"}, "as you"},
		"a real agent keyless": {"[agent]\ncommand = [\"claude-code-acp\"]\n", []string{"can use the agent as you"}, "mcp.anonymous"},
		"all closed":           {"[acp]\nauth_key = \"abc\"\n[mcp]\nanonymous = false\n", nil, "acp."},
		"a key with a space":   {"[acp]\nauth_key = \"hush hush\"\n", []string{"the key acp.auth_key has a byte that cannot travel"}, "hush hush"},
		"a client's odd key":   {"[[acp.keys]]\nname = \"laptop\"\nkey = \"schlüssel\"\n", []string{"the key of laptop has a byte"}, "schlüssel"},
		"origins with a key":   {"[acp]\nauth_key = \"abc\"\nallowed_origins = [\"https://a.example\"]\n", []string{"allowed_origins has no effect"}, "mcp"},
		"what comes later":     {"[acp]\nauth_key = \"abc\"\n[debug]\nactions = true\n", []string{"debug.actions (t:4) has no effect"}, "mcp"},
		"no facade to tell of": {"[agent]\ndelivery = \"file\"\n", []string{"agent.delivery (t:2) has no effect"}, "mcp.anonymous"},
		"a socket for nobody":  {"[agent]\ndelivery = \"proxy\"\nbridge_socket = \"/x\"\n[mcp]\n", []string{"agent.bridge_socket (t:3) has no effect"}, "agent.delivery (t:"},
		"a way around":         {"[agent]\nallow_direct = true\nbridge_socket = \"/x\"\n[mcp]\n", []string{"agent.allow_direct is true"}, "bridge_socket"},
		"a frame too large":    {"[acp]\nauth_key = \"abc\"\n[limits]\nconnection_bytes = \"4MiB\"\n", []string{"does not hold one frame"}, "mcp"},
	} {
		t.Run(name, func(t *testing.T) {
			loaded, err := config.LoadBytes("t", []byte(c.text), config.Options{})
			if err != nil {
				t.Fatal(err)
			}
			all := strings.Join(Warnings(loaded), "\n")
			for _, want := range c.says {
				if !strings.Contains(all, want) {
					t.Errorf("%q is not in\n%s", want, all)
				}
			}
			if strings.Contains(all, c.never) {
				t.Errorf("%q is in\n%s", c.never, all)
			}
		})
	}
}
