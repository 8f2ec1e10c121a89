package mcp

// Methods.
const (
	MethodInitialize  = "initialize"
	MethodInitialized = "notifications/initialized" // notification
	MethodToolsList   = "tools/list"
	MethodToolsCall   = "tools/call"
	MethodPing        = "ping"
	MethodCancelled   = "notifications/cancelled"          // notification
	MethodProgress    = "notifications/progress"           // notification
	MethodListChanged = "notifications/tools/list_changed" // notification
	MethodMessage     = "notifications/message"            // notification: a log record
	MethodSampling    = "sampling/createMessage"           // server to client
	MethodRoots       = "roots/list"                       // server to client
	MethodElicitation = "elicitation/create"               // server to client
	MethodListen      = "subscriptions/listen"             // modern era
)

// VersionRequested is the version that the handshake asks for.
const VersionRequested = "2025-06-18"

// VersionModern is the era without a handshake: each request says its version.
const VersionModern = "2026-07-28"

// Keys of _meta.
const (
	MetaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaProgressToken      = "progressToken"
	MetaRefusal            = "acpod.dev/refusal"
	MetaOverload           = "acpod.dev/overload"
)

// acceptedVersions may be answered by a server. The set is justified by the four
// inner methods that the pod sends: initialize, notifications/initialized,
// tools/list and tools/call mean the same in all of them. Whoever adds a method or
// another transport checks it again.
var acceptedVersions = []string{VersionRequested, "2025-03-26", "2024-11-05"}
