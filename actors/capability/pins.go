package capability

// Pins remember what each tool was when it was first admitted, so that one that has changed since is held back until the
// operator accepts it. Safe from any goroutine; nothing waits for a disk.
type Pins interface {
	// Admit pins tools that were never seen before; of those that were, nothing changes. What was admitted is pinned when it
	// returns. A tool that is not as it was pinned is remembered for the operator, who may accept it.
	Admit(owner PinOwner, tools []*Tool)
	// Changed names what of a tool is not as it was pinned: "description", "input schema", "output schema", "annotations",
	// "title", or why it cannot be compared. nil = it is as it was, or was never pinned. It costs a look into a map.
	Changed(owner PinOwner, tool *Tool) []string
}

// PinOwner is whose tools a pin is about. The same name of another owner is another tool.
type PinOwner struct {
	Scope  string // "" = the operator's servers; of clients: a hash of the key and the client's secret
	Server string // declared name
}
