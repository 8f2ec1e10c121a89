package agent

// Footprint is what one agent process costs the pod beside the bytes on its session's account: the buffers of its three pipes (64 KiB each,
// the end of stderr twice while it moves), what may be written to it when its session is full (reserveBytes), its answer of initialize
// (maxInfo), an error that passed whole (wholeError) and the ids of its open requests, a thread that waits for it, and goroutines.
const Footprint = 1 << 20
