// Package demo is the scripted agent behind `acpod agent demo`: it speaks ACP on its standard input and output and does
// what each line of a prompt says, so that a person, a test or the harness can drive every way through a pod without a model.
//
// It is the other side of the wire and shares nothing with the pod's code: ACP comes from an SDK for Go, MCP from
// mcp-go's client. What the pod and this agent agree on is therefore what the protocols say. What the SDK does not know
// (newer methods, methods of our own, answers that nobody should give) is read and written as lines of JSON: wire.go.
//
// The lines it knows are one table, Lines, which is also the command's help. Everything else is streamed back behind
// "echo: ". Images, audio and resources of a prompt are told by type and size. How it behaves outside turns is chosen by
// the variable DEMO_AGENT, a list of the words in Behaviours. A transcript of each session is kept below the state
// directory, so that session/load, resume, fork, list and delete of another process find it.
//
// Requests beyond ACP's: _demo/echo answers its params to the byte, _demo/fail answers them as its error, and a
// notification _demo/note comes back as _demo/noted.
package demo
