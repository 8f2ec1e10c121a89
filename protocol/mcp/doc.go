// Package mcp is the Model Context Protocol as far as the pod interprets it: tools
// and results as raw bytes with the few members that are read beside them, the
// params that the pod sends, and the two protocol eras. It is pure: bytes in, values
// out. It does not know how its messages travel.
//
// A tool keeps the bytes in which it was published, so that no keyword of its schema
// is lost and a digest of it means something; a result is carried to the byte.
package mcp
