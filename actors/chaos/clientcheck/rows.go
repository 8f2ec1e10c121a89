package clientcheck

// row is one rule.
type row struct {
	section, name, expected string
	unasked                 string // why it was not judged, when nothing better is known
}

// The names of the rows, by section.
const (
	rowUpgrade     = "the upgrade asks for a WebSocket at /acp"
	rowSubprotocol = "a list of subprotocols offers acp.v1"
	rowKey         = "the key is presented"
	rowHost        = "Host is a loopback name"

	rowFraming = "frames keep to RFC 6455"
	rowText    = "messages are text in UTF-8"
	rowJSON    = "each message is one JSON-RPC object"
	rowBatch   = "no batch is sent"
	rowVersion = `"jsonrpc" is "2.0"`
	rowIDs     = "ids are strings or integers"
	rowReuse   = "an id is used again only after its answer"
	rowAnswers = "answers come once, each to a request"
	rowShape   = "an answer has a result or an error"
	rowSizes   = "messages keep to the limits"
	rowOwn     = "it sends only what a client may send"
	rowInbound = "what it sends through a tunnel fits it"
	rowReads   = "it reads what it is sent"

	rowFirst      = "initialize comes first, and alone"
	rowInitialize = "initialize asks for protocol version 1"
	rowCaps       = "what it says of itself has its shape"
	rowNew        = "session/new has its params"
	rowServers    = "servers are declared well"
	rowEarly      = "early tools are well-formed"
	rowRequests   = "requests about a session name one that is open"
	rowPrompt     = "a prompt has content"

	rowMeanwhile   = "the pod is answered while session/new is open"
	rowConnect     = "connect gives a connection id"
	rowDistinct    = "each connection has an id of its own"
	rowHandshake   = "MCP initialize answers a version that it was offered"
	rowInitialized = "notifications/initialized is not answered"
	rowPages       = "tools/list gives all its pages"
	rowTools       = "tools are well-formed"
	rowCall        = "a tool is called and gives a result"
	rowContent     = "a result's content is well-formed"
	rowNoTool      = "a tool that there is not is an error"
	rowWrong       = "wrong arguments are an error"
	rowNoMethod    = "an unknown MCP method is -32601"
	rowNoNote      = "an unknown MCP notification is ignored"
	rowMembers     = "unknown members and _meta are ignored"
	rowMixed       = "requests at once are answered each under its own id"
	rowCancel      = "a cancelled request is answered at most once"
	rowNoServer    = "a server that was not declared is an error"
	rowNoTarget    = "a connection that there is not is an error"
	rowDisconnect  = "disconnect ends a connection"
	rowEnded       = "an ended connection serves nothing"
	rowOther       = "the other connection goes on"

	rowUnknown    = "an unknown request is -32601"
	rowUndeclared = "what it does not declare is -32601"
	rowUpdates    = "updates of every kind are taken"
	rowPodNotes   = "notifications of the pod are not answered"
	rowPermission = "a permission is answered with an option or cancelled"

	rowPing      = "a ping is answered in time, with its payload"
	rowLarge     = "a large message is taken"
	rowFragments = "a message in fragments is taken"

	rowEcho      = "the pod's close is answered"
	rowBack1012  = "it comes again after 1012"
	rowBack1013  = "it comes again after 1013"
	rowBackLost  = "it comes again after a lost socket"
	rowStorm     = "it waits between attempts"
	rowSecret    = "it keeps its secret"
	rowResume    = "it resumes its session"
	rowServed    = "its servers are served again"
	sectionEnter = "handshake"
)

const (
	noSocket  = "no client came in"
	noSession = "the client opened no session"
	noServer  = "no server that could be asked"
	noTarget  = "no connection, or generation C, which has none"
	noTool    = "no tool says readOnlyHint, and none was named with --tool: a call might change something"
	noReturn  = "the client did not come again"
)

// rows are all rows, in the order of the report.
var rows = []row{
	{sectionEnter, rowUpgrade, "GET /acp with Upgrade: websocket, version 13 and a key of 16 bytes", noSocket},
	{sectionEnter, rowSubprotocol, "acp.v1 among the subprotocols, when any is offered", noSocket},
	{sectionEnter, rowKey, "Authorization: Bearer KEY, once, or the subprotocol openab.bearer.KEY", "no key was asked for: --key-file"},
	{sectionEnter, rowHost, "localhost or a loopback address, as a pod without a key wants it", "a pod with a key does not look at it"},

	{"frames", rowFraming, "masked frames, no reserved bits or opcodes, short whole control frames, fragments in order, a close code that may be sent", noSocket},
	{"frames", rowText, "no binary message, and valid UTF-8", noSocket},
	{"frames", rowJSON, "an object with no member of the envelope twice, and a method or an answer in it", noSocket},
	{"frames", rowBatch, "one message a frame", noSocket},
	{"frames", rowVersion, "in every message, answers too", noSocket},
	{"frames", rowIDs, "a string of at most 1024 bytes, or an integer without fraction or exponent; not null", noSocket},
	{"frames", rowReuse, "no two open requests of one id", noSocket},
	{"frames", rowAnswers, "one answer for each request of the pod, none for anything else", noSocket},
	{"frames", rowShape, "exactly one of result and error; an error has an integer code and a string message", "nothing was answered"},
	{"frames", rowSizes, "64 KiB before initialize, then 1 MiB a request or notification, 8 MiB an answer", noSocket},
	{"frames", rowOwn, "nothing that is the pod's or an agent's to say: _acpod/…, session/update, fs/…, mcp/connect and such", noSocket},
	{"frames", rowInbound, "mcp/message with a connection id that it gave; progress with a token that it was given", "it sent nothing through a tunnel"},
	{"frames", rowReads, "each message is taken off the socket within --patience", noSocket},

	{"opening", rowFirst, "initialize is the first message, and nothing follows before its answer", "the client did not say initialize"},
	{"opening", rowInitialize, "protocolVersion: an integer, 1 or more (more is answered with 1)", "the client did not say initialize"},
	{"opening", rowCaps, "clientCapabilities an object of ACP's kinds, clientInfo with name and version, a secret of 16 to 128 characters", "the client did not say initialize"},
	{"opening", rowNew, "cwd an absolute path, mcpServers an array", noSession},
	{"opening", rowServers, "names of 1 to 64 of [A-Za-z0-9_-], ids of 1 to 1024 bytes, none twice, at most 8", noSession},
	{"opening", rowEarly, "an array of tools in a declaration's _meta[\"acpod.dev/tools\"]", "no declaration has early tools"},
	{"opening", rowRequests, "a sessionId that the pod gave and that was not closed", "it sent none"},
	{"opening", rowPrompt, "an array of content blocks that says something, of types that were offered", "it sent no prompt; one that is typed while the check runs is judged"},

	{"tunnel", rowMeanwhile, "an answer to connect before session/new is answered", noServer},
	{"tunnel", rowConnect, "a connection id of 1 to 1024 bytes", noTarget},
	{"tunnel", rowDistinct, "a second connect, beside the first, gives another id", noTarget},
	{"tunnel", rowHandshake, "2025-06-18, 2025-03-26 or 2024-11-05", noTarget},
	{"tunnel", rowInitialized, "no answer", noTarget},
	{"tunnel", rowPages, "pages with an array of tools; each nextCursor leads to another one, and they end", noServer},
	{"tunnel", rowTools, "a name once in the list, an inputSchema that is an object of type object, within what a pod takes", noServer},
	{"tunnel", rowCall, "one result, well or isError", noTool},
	{"tunnel", rowContent, "content is an array of blocks with a type and what belongs to it", "no tool gave a result"},
	{"tunnel", rowNoTool, "an error, or a result with isError", noServer},
	{"tunnel", rowWrong, "an error, or a result with isError", noTool},
	{"tunnel", rowNoMethod, "-32601, not silence", noServer},
	{"tunnel", rowNoNote, "no answer", noTarget},
	{"tunnel", rowMembers, "the same answer as without them", noServer},
	{"tunnel", rowMixed, "each answer is that of its request, on every tunnel", noServer},
	{"tunnel", rowCancel, "an answer, -32800, or none; never two", noServer},
	{"tunnel", rowNoServer, "an error, not silence", noTarget},
	{"tunnel", rowNoTarget, "an error, not silence and not a result", noServer},
	{"tunnel", rowDisconnect, "an answer that is a result; none in generation 0, where it is a notification", noTarget},
	{"tunnel", rowEnded, "an error, not silence and not a result", noTarget},
	{"tunnel", rowOther, "tools/list as before", noTarget},

	{"agent", rowUnknown, "-32601, not silence", noSession},
	{"agent", rowUndeclared, "-32601 to fs/…, terminal/… and elicitation/… that clientCapabilities do not offer", noSession},
	{"agent", rowUpdates, "no answer, and the client goes on; unknown kinds too", noSession},
	{"agent", rowPodNotes, "no answer, and the client goes on; unknown ones of _acpod/ too", noSession},
	{"agent", rowPermission, "outcome selected with an optionId that was offered, or cancelled", noSession},

	{"transport", rowPing, "a pong with the same bytes within --patience", noSession},
	{"transport", rowFragments, "a request in three frames with a ping between them is answered", noSession},
	{"transport", rowLarge, "a request of 1 MiB is answered", noSession},

	{"coming back", rowEcho, "a close frame", noSession},
	{"coming back", rowBack1012, "another socket within --step", noSession},
	{"coming back", rowBack1013, "another socket within --step", noReturn},
	{"coming back", rowBackLost, "another socket within --step", noReturn},
	{"coming back", rowStorm, "no more than 5 attempts in any second, also when they are refused with 503", noReturn},
	{"coming back", rowSecret, "the same _meta[\"acpod.dev/client\"] on each socket", noReturn},
	{"coming back", rowResume, "session/resume with the id of its session", noReturn},
	{"coming back", rowServed, "its servers in mcpServers again; tools/list is answered on a new connection", noReturn},
}
