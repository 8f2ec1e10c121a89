// Package playground is the page at "/" of the public listener: a chat, a small room of elements that an agent can touch,
// the five katashiro tools on that room, and a live log of frames. It is the shortest way to see the whole pod at work,
// and it is a client like any other: the page speaks the wire of /acp and nothing else, with code of its own.
//
// There is no build step: the files under page/ are served as they are, from memory. What peers send enters the page as
// text; the content security policy allows no inline code, no foreign source and no frame around the page.
//
// The package knows nothing of sessions, agents or tools. Its subpackage demo is the scripted agent.
package playground
