package capability

import "github.com/acpod/acpod/runtime/kernel"

// DeskKind is the kind of a desk in the tree.
const DeskKind = "desk"

// DeskSpec describes the desk of one session, or the facade's own, as a child
// of its spawner. It takes the messages of this package, comes back after a
// crash with its names, and ends the calls that it had.
func DeskSpec(name string, cfg DeskConfig) kernel.Spec {
	cfg = cfg.withDefaults()
	return kernel.Spec{Name: name, Kind: DeskKind, Restart: kernel.Permanent, New: func() kernel.Behavior { return newDesk(cfg) }}
}
