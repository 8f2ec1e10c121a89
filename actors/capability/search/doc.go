// Package search ranks tools by how well they answer a few words. It is pure
// and deterministic: the same query over the same tools gives the same
// order, ties in the order in which the tools were given. It knows nothing
// of servers' states, policy or JSON results.
//
// A list of tools is read once into an [Index], which is immutable. What a caller may see at one moment is a list of [Entry]s:
// tools of any number of indexes, each with the name of its server. [Rank] counts
// only what it is given: a tool that the caller may not see changes nothing, and one server's new list leaves the indexes
// of the others as they are.
//
// For the owner of a catalog: make one index a list, when it is searched first, keep it as long as the list, and share it
// among all who see the list. A search then costs a few arrays over its entries; there is nothing to rebuild or to cache.
//
// How the order comes about, and what it was judged by, is in docs/search.md.
package search
