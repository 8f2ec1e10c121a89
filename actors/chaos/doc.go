// Package chaos attacks a pod and says what became of its promises. [Run] starts a pod, or finds one, surrounds it with simulated
// extensions, facade clients and clients of a simulated agent, lets them do what the chosen faults are, and looks at the pod's tree,
// metrics, log and process all the while. When all have left it waits until the pod is at rest, and writes a [Report].
//
// It knows the pod from outside only: the wire, the command line, the debug listener. With the server it shares the protocol packages
// and nothing else, so that a mistake in the one is not a mistake in the other. The parts:
//
//	invariant   the promises, and what was seen of them
//	ledger      what was asked, served and answered
//	fault       the faults by name, and the dice
//	wire        one WebSocket that may break every rule; proxy: a bad network
//	peer        a client's socket with its books; server: the MCP server behind it
//	extension   clients that serve tools; caller: clients of the facade; prompter: clients of an agent
//	agent       the agent; pod: the pod under test; watch: what the pod shows
//
// Two runs with one seed draw the same faults at the same places. When they happen depends on the machine.
package chaos
