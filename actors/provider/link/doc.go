// Package link is the seam between a provider's actor and whatever carries its messages: a child's stdin and stdout, or HTTP.
//
// A [Link] carries JSON-RPC messages and knows nothing of what they mean beyond which of them answer which request. Ids, the handshake,
// lists and calls are the actor's. Nothing that is passed here is copied: a message brings the lease that pays for it.
package link
