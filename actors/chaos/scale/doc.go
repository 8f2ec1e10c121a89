// Package scale measures what many connected extensions cost a pod, beside what they cost the least server that could hold them.
//
// [Run] starts the pod, connects so many simulated extensions with a session and a server of tools each, and looks at the pod
// while they are idle; then it makes tool calls over the facade at a steady rate, spread evenly over the sessions, and looks
// again; then the extensions leave, and the pod has to be at rest. After that the same number of the same sockets does the same
// with a bare echo server on gws in a process of its own ([ServeEcho]), so that the pod's figures can be given as ratios.
//
// Calls are made in an open loop: each has its time, whatever became of those before it, and its latency counts from that time
// and not from when the harness got round to it. How late the harness itself was stands in the report.
//
// Pod, echo server and extensions are separate processes: the extensions are this one. Nothing here is asserted but that every
// call was answered once, by the extension that it was meant for, and that nothing is left behind.
//
// It knows the pod by its wire, its config file and its debug listener only.
package scale
