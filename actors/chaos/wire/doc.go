// Package wire is one WebSocket as a client has it that may break every rule: whole messages for those who keep them, frames,
// half frames and nonsense for those who do not, resets, half closes and reads that never come.
//
// It has its own framing, because a library hides what an attack needs (masks, fragments, lengths that lie) and because a
// mistake of the pod's library must not be made again by what checks it. It judges what the server sends: what RFC 6455
// forbids a server is a Violation.
//
// It is made to be held ten thousand times in one process. A Socket has no goroutine of its own: who wants to read calls Read,
// from one goroutine at a time. While nothing comes, a Socket costs less than 1 KiB and what the net package needs, and no
// bytes of the pool. A message is written with one system call as long as it is shorter than 64 KiB. It takes plain ws:// only.
//
// It knows neither ACP nor MCP, nor what a payload means, save that a text message has to be UTF-8.
package wire
