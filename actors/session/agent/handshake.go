package agent

import (
	"bytes"
	"fmt"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// initializeID is our first request, which no question stands for.
const initializeID = 1

// maxInfo bounds the answer of initialize, which is kept as long as the agent; real ones have a few KiB.
const maxInfo = 64 << 10

// initialize is our first line.
func (c *Config) initialize() []byte {
	params := acp.AgentInitialize(nil, c.Version, acp.AgentClient(c.Client))
	line := jsonrpc.AppendRequest(nil, jsonrpc.IntID(initializeID), acp.MethodInitialize, params)
	return append(line, '\n')
}

// parseInfo reads the answer into memory of its own.
func parseInfo(result []byte) (*Info, error) {
	if len(result) > maxInfo {
		return nil, fmt.Errorf("its answer to initialize has %d bytes, more than %d", len(result), maxInfo)
	}
	return acp.ParseAgentInfo(bytes.Clone(result))
}
