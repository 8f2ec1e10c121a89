package provider

// Footprint is what one connection costs beside the bytes on its server's account: of a child the buffers of its pipes and of its lines,
// the ring of its stderr, a thread; of HTTP its connections. The pod's worst case counts it for each server of mcp.json. An instance pays for it on
// its session's account, since nobody knows how many there will be. The pod measures it, footprint_test.go.
const Footprint = 1 << 20
