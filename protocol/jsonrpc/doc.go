// Package jsonrpc is the JSON-RPC 2.0 of the pod: envelopes, ids, errors and
// newline-delimited streams. It is pure: bytes in, values out, no goroutine, no
// clock, no socket. It knows neither ACP nor MCP.
//
// # What is interpreted and what is carried
//
// One pass of Scan over a frame finds its kind, id and method, and the byte
// ranges of params, result and error. The whole frame must be JSON text (RFC 8259
// syntax, at most MaxDepth levels deep) and the members of the envelope must be
// unique. What lies inside params, result and error is only carried: duplicate
// names, lone surrogates, bytes that are no UTF-8 and integers beyond 2^53 pass
// unjudged and, because frames are built by splicing those ranges, to the byte.
//
// # Ownership
//
// Byte slices in a Frame, an Object or an Error alias the input. Whoever keeps
// one keeps the whole input alive, and pays for it. ID and Method are copies.
//
// # Concurrency
//
// All functions may be called from any goroutine. A LineReader belongs to one.
package jsonrpc
