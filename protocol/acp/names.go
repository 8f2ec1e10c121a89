package acp

// ProtocolVersion is the one version of ACP that the pod speaks.
const ProtocolVersion = 1

// Methods that a client calls.
const (
	MethodInitialize      = "initialize"
	MethodAuthenticate    = "authenticate"
	MethodLogout          = "logout"
	MethodSessionNew      = "session/new"
	MethodSessionLoad     = "session/load"
	MethodSessionResume   = "session/resume"
	MethodSessionFork     = "session/fork"
	MethodSessionList     = "session/list"
	MethodSessionClose    = "session/close"
	MethodSessionDelete   = "session/delete"
	MethodSessionPrompt   = "session/prompt"
	MethodSessionCancel   = "session/cancel" // notification
	MethodSessionSetMode  = "session/set_mode"
	MethodSessionSetOpt   = "session/set_config_option"
	MethodCancelRequest   = "$/cancel_request"           // notification, both ways
	MethodSessionUpdate   = "session/update"             // notification, agent to client
	MethodPermission      = "session/request_permission" // agent to client
	MethodReadTextFile    = "fs/read_text_file"
	MethodWriteTextFile   = "fs/write_text_file"
	MethodTerminalCreate  = "terminal/create"
	MethodElicitation     = "elicitation/create"
	MethodElicitationDone = "elicitation/complete" // notification
)

// Methods of MCP over ACP; generation 0 spells them with an underscore.
const (
	MethodMCPConnect    = "mcp/connect"
	MethodMCPMessage    = "mcp/message"
	MethodMCPDisconnect = "mcp/disconnect"
	MethodMCPCancel     = "mcp/cancel" // notification, generation A

	MethodMCPConnect0    = "_mcp/connect"
	MethodMCPMessage0    = "_mcp/message"
	MethodMCPDisconnect0 = "_mcp/disconnect" // notification
)

// The pod's own notifications.
const (
	MethodKeepalive = "_acpod/keepalive"
	MethodDraining  = "_acpod/draining"   // {deadline_ms}
	MethodServers   = "_acpod/servers"    // {sessionId, servers, facade}
	MethodTurnEnded = "_acpod/turn_ended" // {sessionId, stopReason|error}
)

// Keys of _meta.
const (
	MetaServers     = "acpod.dev/servers" // in the result of session/new and its like
	MetaSession     = "acpod.dev/session" // in the result of session/resume
	MetaFacade      = "acpod.dev/facade"  // with agent.driver = "none"
	MetaTools       = "acpod.dev/tools"   // in a declaration: its tools, before it is connected
	MetaClient      = "acpod.dev/client"  // in initialize: the client's secret
	MetaTraceParent = "traceparent"
	MetaTraceState  = "tracestate"
	MetaBaggage     = "baggage"
)

// Kinds of session/update.
const (
	UpdateUserMessage       = "user_message_chunk"
	UpdateAgentMessage      = "agent_message_chunk"
	UpdateAgentThought      = "agent_thought_chunk"
	UpdateToolCall          = "tool_call"
	UpdateToolCallUpdate    = "tool_call_update"
	UpdatePlan              = "plan"
	UpdateAvailableCommands = "available_commands_update"
	UpdateCurrentMode       = "current_mode_update"
	UpdateConfigOption      = "config_option_update"
	UpdateSessionInfo       = "session_info_update"
	UpdateUsage             = "usage_update"
)

// Why a turn ended.
const (
	StopEndTurn         = "end_turn"
	StopMaxTokens       = "max_tokens"
	StopMaxTurnRequests = "max_turn_requests"
	StopRefusal         = "refusal"
	StopCancelled       = "cancelled"
)

// Types of content blocks.
const (
	BlockText         = "text"
	BlockImage        = "image"
	BlockAudio        = "audio"
	BlockResource     = "resource"
	BlockResourceLink = "resource_link"
)

// Errors of the binding that generation C adds, in the outer error.
const (
	CodeServerLimit       = -33000
	CodeServerUnavailable = -33001
	CodeServerFailed      = -33002
)
