// Package demo is the scripted agent behind `acpod agent demo`: it speaks ACP on its standard input and output and does
// what each line of a prompt says, so that a person, a test or the harness can drive every way through a pod without a model.
//
// It is the other side of the wire and shares nothing with the pod's code: ACP comes from an SDK for Go, MCP from
// mcp-go's client. What the pod and this agent agree on is therefore what the protocols say.
//
// The lines it knows are listed at Agent.line. Everything else is streamed back behind "echo: ". A transcript of each
// session is kept below the state directory, so that session/load and session/resume find it again.
package demo
