// Command acpod-chaos attacks a pod and checks what it promises. It is the other side of the wire: simulated extensions,
// facade clients and agents, with faults by name and by seed. It shares no code with the pod beyond the protocol packages,
// so that a mistake in the one is not a mistake in the other.
package main
