// Package httplink carries the messages of one configured server over HTTP: Streamable HTTP of the versions with a handshake
// (2025-03-26 to 2025-11-25) and of the one without (2026-07-28), and the older HTTP with a stream of events (2024-11-05).
//
// [New] makes a [link.Link]; what it promises beyond that contract:
//
//   - One host. Redirects are not followed, no proxy is taken from the environment, the endpoint that an older server names must be of
//     the same origin, and no address in an answer is fetched. So no configured header reaches a second host.
//   - What a server makes it hold is paid for by [link.Sink.Account] before it is there: one lease a message, which goes on with it. A
//     message is read once into one buffer. HTTP/1.1 only and no compression, because what HTTP/2 and a decompressor hold is on no account.
//   - Each request that Send took ends once: in a Message with its id or in Failed. An error that proves that the server did not accept
//     it is [link.ErrUnsent]; a connection that was cut after the request had been written is not.
//   - Nothing that Run started outlives it, but for the end of a session, which is told to the server for at most two seconds before Run returns.
//
// It does not know what a message means, with few exceptions that the transport's own rules make: initialize begins a session and carries
// none, notifications/initialized goes before what follows it, notifications/cancelled ends the request that it names, and in the era
// without a handshake each message says its version.
package httplink
