package mcpjson

import "time"

// What one mcp.json may hold. Each is far beyond what people write; past it an entry, or the file, is left out with a problem that says so.
const (
	MaxFileBytes = 1 << 20 // of one file
	MaxServers   = 256     // of all files together
	MaxArgs      = 128     // of one server
	MaxEnv       = 256     // variables of one server
	MaxHeaders   = 64      // of one server
	MaxPatterns  = 256     // of each list of a tool_filter
	MaxRoots     = 64
	MaxString    = 32 << 10 // bytes of one string, before and after variables were replaced
	MaxProblems  = 200      // remembered; the last says how many more there were
)

const (
	maxNameBytes   = 64
	maxTimeout     = 24 * time.Hour
	maxIdleTTL     = 30 * 24 * time.Hour
	maxConcurrency = 1024
	maxRate        = 1e6
	maxConnected   = 1024
)
