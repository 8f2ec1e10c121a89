package capability

import "github.com/acpod/acpod/runtime/kernel"

// Configured is one server of the operator's mcp.json. Every desk of the pod has it, the anonymous one too.
// What it is connected to is nobody's session. All methods are safe from any goroutine but those that take a Ctx.
type Configured interface {
	Source
	// Allows is the operator's tool_filter, by published name: a pure function of the configuration. What it does not allow
	// stands in no list, and is refused before anything is connected.
	Allows(tool string) bool
	// Discover has it connect and list, where that may be tried now, on a turn of the desk c. Exactly one [kernel.Answer]
	// comes when Tools() tells the list, or why there is none; Msg is [Discovered]. It comes at once where nothing is to
	// be waited for. An error says that no answer comes. What is wanted decides how much is done for a server that
	// has failed a moment ago.
	Discover(c *kernel.Ctx, want Want) (kernel.Ticket, error)
}

// Want is what somebody wants a list for.
type Want uint8

const (
	Searched Want = iota // to see what there is: a server that has failed is tried again, and not waited for longer than a moment
	Guessed              // for a call of a name that the server may have as well as others
	Meant                // for a call of a name that is the server's or nobody's
)

// Discovered answers Configured.Discover.
type Discovered struct{}

// Isolated is a configured server of which each session has one of its own: a desk spawns the spec as a child of its own, and uses
// the source that comes with it, which may be [Bound].
type Isolated interface {
	Configured
	Instance(tag string) (Configured, kernel.Spec)
}

// Bound is an instance that has to know its actor before that has started: the desk calls Bind once, between the spawn and the first use.
type Bound interface{ Bind(kernel.Ref) }
