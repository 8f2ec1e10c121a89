// Package caller is the facade's other side: MCP clients with the tokens of sessions, who call tools at a rate that does not depend on
// how fast they are answered. Each call has a number of its own in its arguments; what is called, how, and what is done wrong, follows
// from the seed and that number. What comes back is entered in the ledger.
package caller
