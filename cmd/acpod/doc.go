// Command acpod is a pod for coding agents: clients that cannot listen talk to an agent over one WebSocket and serve it tools
// back through the same socket. This package is flags and wiring; what the commands do is in actors/pod.
package main
