package capability

// Pins remember what each tool was when it was first admitted, so that one that has changed since is held back until the
// operator accepts it. Safe from any goroutine; nothing waits for a disk.
type Pins interface {
	// Admit pins tools that were never seen before; of those that were, nothing changes. What was admitted is pinned when it
	// returns. A tool that is not as it was pinned is remembered for the operator, who may accept it.
	Admit(owner PinOwner, tools []*Tool)
	// Changed names what of a tool is not as it was pinned: "description", "input schema", "output schema", "annotations",
	// "title", or, alone, why that cannot be told: [PinUnreadable], [PinNoRoom], [PinNewer]. nil = it is as it was, or was never pinned. It costs a look into a map.
	Changed(owner PinOwner, tool *Tool) []string
}

// PinOwner is whose tools a pin is about. The same name of another owner is another tool.
type PinOwner struct {
	Scope  string // "" = the operator's servers; of clients: a hash of the key and the client's secret
	Server string // declared name
}

// Why a tool cannot be compared with its pin.
const (
	PinUnreadable = "unreadable pin"       // pins were lost, so it may have had one
	PinNoRoom     = "no room for a pin"    // so the next definition could not be told from this one
	PinNewer      = "pin of a newer acpod" // whose recipe this one does not have
)
