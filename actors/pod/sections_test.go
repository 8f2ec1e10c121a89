package pod

import (
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/actors/session/agent"
)

// unset lists the fields of a package's Config that pod left at their zero value. A number or duration that is forgotten there
// would silently be the package's own default, whatever the configuration says.
func unset(v reflect.Value, path string) []string {
	var out []string
	for field, value := range v.Fields() {
		switch {
		case !field.IsExported():
		case value.Kind() == reflect.Struct:
			out = append(out, unset(value, path+field.Name+".")...)
		case value.IsZero():
			out = append(out, path+field.Name)
		}
	}
	return out
}

func TestEverySettingReachesItsPackage(t *testing.T) {
	keyFile := t.TempDir() + "/key"
	if err := os.WriteFile(keyFile, []byte("facade-key"), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.LoadBytes("t", []byte(`
[acp]
auth_key = "a"
allowed_origins = ["https://a.example"]
trace = true
[agent]
forward_meta = ["k"]
modes = ["plan"]
queue = 2
[[agent.permission]]
server = "s"
tool = "t"
decision = "allow"
[mcp]
anonymous = false
auth_key_file = "`+keyFile+`"
direct_tools = ["x"]
redact = ["sk-[a-z]+"]
[limits]
connections_per_address = 3
sessions_per_key = 4
`), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	desk, err := deskConfig(loaded, capability.DeskConfig{})
	if err != nil {
		t.Fatal(err)
	}
	sessions, err := sessionConfig(loaded, agent.Config{}, desk, "http://127.0.0.1:1/mcp", "v1")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config any
		own    []string // what is not a setting: the package's own constants, and what compose adds
	}{
		"connection": {connectionConfig(loaded, "v1"), []string{"FrameTimeout", "BytesWait", "OfferWait", "FlushTimeout", "EarlyFrameBytes", "SlowGrace", "Admission", "Descends", "HandshakePatience"}},
		"desk":       {desk, []string{"Tag", "Owner", "View", "Audit", "Ledger", "Open", "Schemas", "Roster", "Configured", "Pins", "PinScope", "OwnPins", "Log", "Limits.KeepResult", "Limits.Calls", "Limits.Keys", "Limits.Names", "Limits.Servers", "Limits.KeptBytes", "Limits.PageBytes"}},
		"session": {sessions, []string{
			"Agent.Command", "Agent.Client", "Agent.Started", "Agent.Dir", "Agent.Env", "Agent.LineBytes", "Agent.LineWait", "Agent.StartTimeout", "Agent.StopGrace", "Agent.StdinTimeout", "Agent.Secrets", "Agent.Version", "Agent.Guardian", "Agent.Cgroups", "Agent.Log",
			"Desk.Tag", "Desk.Owner", "Desk.View", "Desk.Audit", "Desk.Ledger", "Desk.Open", "Desk.Schemas", "Desk.Roster", "Desk.Configured", "Desk.Pins", "Desk.PinScope", "Desk.OwnPins", "Desk.Log", "Desk.Limits.KeepResult", "Desk.Limits.Calls", "Desk.Limits.Keys", "Desk.Limits.Names", "Desk.Limits.Servers", "Desk.Limits.KeptBytes", "Desk.Limits.PageBytes",
			"Tunnel.Pages", "Tunnel.Calls", "Tunnel.Connect", "Tunnel.Disconnect", "TunnelStats", "Log", "Admission", "Delivery", "Proxy", "Store",
		}},
		"facade": {facadeConfig(loaded, desk, nil, "v1"), []string{
			"Socket", "Inside", "Callers", "Bytes", "Connections", "ReadTimeout",
			"Desk.Tag", "Desk.Owner", "Desk.View", "Desk.Audit", "Desk.Ledger", "Desk.Open", "Desk.Schemas", "Desk.Roster", "Desk.Configured", "Desk.Pins", "Desk.PinScope", "Desk.OwnPins", "Desk.Log", "Desk.Limits.KeepResult", "Desk.Limits.Calls", "Desk.Limits.Keys", "Desk.Limits.Names", "Desk.Limits.Servers", "Desk.Limits.KeptBytes", "Desk.Limits.PageBytes",
		}},
	} {
		for _, path := range unset(reflect.ValueOf(c.config), "") {
			if !slices.Contains(c.own, path) {
				t.Errorf("%s.Config.%s is not set from the configuration", name, path)
			}
		}
	}
}
