// Package acp is the Agent Client Protocol, version 1, as far as the pod interprets
// it, and the four wire generations in which a client serves MCP over the same
// connection. It is pure: bytes in, values out.
//
// # What is interpreted
//
// The params of a few methods (initialize, session/new and its like, the blocks of a
// prompt, permission requests, cancellations) and of their results only what the pod
// has to change. A member that is interpreted must stand once and be well formed;
// everything else is carried by range and spliced, to the byte. Optional
// members that are malformed degrade to their default, as ACP's schema asks.
//
// # What of a client reaches an agent
//
// The params of a session's start are built anew from a list of what may pass
// (AgentSession), never by taking members away from what the client sent: a
// spelling that one parser overlooks and another reads cannot slip through.
//
// # The generations
//
// Codec is the one interface to the generations 0, A, B and C; CodecFor chooses by the
// declaration, Fallback by the client's answer. docs/adr/0002-four-generations.md
// says why there are four.
package acp
