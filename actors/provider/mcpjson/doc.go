// Package mcpjson reads mcp.json: which servers the operator has, how they are reached, and what of them may be used. It is pure: bytes
// and an environment in, values and problems out. It starts and dials nothing.
package mcpjson
