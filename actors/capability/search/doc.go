// Package search ranks tools by how well they answer a few words. It is pure
// and deterministic: the same query over the same documents gives the same
// order, ties in the order in which the documents were given. It knows nothing
// of servers, policy or JSON results.
package search
