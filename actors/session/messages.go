package session

import "github.com/acpod/acpod/runtime/kernel"

// Messages to the `sessions` supervisor. Each is answered through Client.Respond with its Req, exactly once.

// Open is session/new. The connection has checked, in this order, that it is initialized, [ParseNew],
// limits.sessions_per_connection (its sessions and the opens under way) and [Params.CheckServers].
type Open struct {
	Client Client
	Req    uint64
	Params *Params
	Held   *kernel.Lease // of the frame that Params points into; freed when the request is settled
}

// Resume is session/resume. The connection has checked, in this order, that it is initialized, [ParseResume],
// [Params.CheckServers], [ValidID] and limits.sessions_per_connection (unless it owns that session already).
type Resume struct {
	Client Client
	Req    uint64
	Params *Params
	Held   *kernel.Lease
}

// Load is session/load: a resume that shows its client all that was said before it is answered. It is checked like Resume.
type Load struct {
	Client Client
	Req    uint64
	Params *Params
	Held   *kernel.Lease
}

// Fork is session/fork: a new session with a copy of another's conversation. The connection has checked, in this order, that it is initialized,
// [ParseResume], [Params.CheckServers], [ValidID] and limits.sessions_per_connection.
type Fork struct {
	Client Client
	Req    uint64
	Params *Params
	Held   *kernel.Lease
}

// Delete is session/delete: the session ends for good, for the pod and for its agent. The connection has checked that it is initialized and
// [ValidID].
type Delete struct {
	Client  Client
	Req     uint64
	Session string
}

// List is session/list.
type List struct {
	Client Client
	Req    uint64
	Params []byte // raw, nil when absent
	Held   *kernel.Lease
}

// Messages to a session, for the ref that Client.Granted gave. They go through one lane, so a Cancel that follows
// its Prompt finds it. One from a client that does not own the session (any more) is answered like an unknown id.
// When Tell fails with ErrStopped the session is gone: the answer is that of an unknown id. When the session ends
// before it answered, the connection, which watches the ref, answers.

// Prompt is session/prompt. The connection has checked that it is initialized, limits.prompts_per_connection, that
// there is a sessionId and that it owns that session; busy and the content are the session's to check.
type Prompt struct {
	Client Client
	Req    uint64
	Params []byte // raw
	Held   *kernel.Lease
}

// Cancel is session/cancel, or $/cancel_request for the open prompt or Forward Req.
type Cancel struct {
	Client Client
	Req    uint64 // 0 = whatever turn is running, and all prompts that wait
}

// Forward is a request that the agent answers: session/set_mode, session/set_config_option, and whatever else has the id of a
// session that the connection owns and is neither the pod's to answer nor a client's. Its answer is the agent's, to the byte.
type Forward struct {
	Client Client
	Req    uint64
	Method string
	Params []byte // raw
	Held   *kernel.Lease
}

// Inform is a notification of that kind.
type Inform struct {
	Client Client
	Method string
	Params []byte // raw
	Held   *kernel.Lease
}

// Close is session/close: the session ends at once and for good.
type Close struct {
	Client Client
	Req    uint64
}

// Detach tells a session, in wire order after all that the client still sent, that its client is gone. A session
// notices the end of Client.Ref by itself too; both are fine, in either order.
type Detach struct{ Client Client }

// Lease implements kernel.Leased.
func (m Open) Lease() *kernel.Lease { return m.Held }

// Lease implements kernel.Leased.
func (m Resume) Lease() *kernel.Lease { return m.Held }

// Lease implements kernel.Leased.
func (m Load) Lease() *kernel.Lease { return m.Held }

// Lease implements kernel.Leased.
func (m Fork) Lease() *kernel.Lease { return m.Held }

// Lease implements kernel.Leased.
func (m List) Lease() *kernel.Lease { return m.Held }

// Lease implements kernel.Leased.
func (m Forward) Lease() *kernel.Lease { return m.Held }

// Lease implements kernel.Leased.
func (m Inform) Lease() *kernel.Lease { return m.Held }

// Lease implements kernel.Leased.
func (m Prompt) Lease() *kernel.Lease { return m.Held }
