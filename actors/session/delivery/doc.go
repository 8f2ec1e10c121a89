// Package delivery is how an agent learns of its tools: which of the ways (agent.delivery) holds for an agent, what is particular to
// that agent (agent.profile: its config file, syntax and variables, as data), and what has to be written, and cleaned up again, in that
// agent's own configuration.
//
// A session calls it before it starts an agent, off its turn: everything here may wait for a disk. It never sees a token: what it
// writes names the environment variable that holds one. It knows nothing of actors, sockets or the configuration of the pod.
package delivery
