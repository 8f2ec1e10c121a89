// Package stdio carries the messages of one configured server over the stdin and stdout of a child process.
//
// [New] makes a [link.Link]; what it promises beyond that contract:
//
//   - The child has the environment that it is given and nothing else, a process group of its own, and the guardian knows it. When Run
//     returns, nothing of the group is left: the end of stdin, a grace, TERM, a grace, KILL.
//   - That the child has ended is told at once, with the end of its stderr, although others of its group may have to be ended first. What it wrote
//     before is read before that.
//   - A line is paid for before it is read, and bounded. While the account has no room the child waits in its pipe; a line for which there is none
//     for a while, or that is too long, is skipped, and the request that it answers fails with that. A line that is no message is skipped and
//     counted, and kept nowhere.
//   - One message is one line, whatever spaces a client has put between its tokens.
//
// It does not know what a message means beyond which request an answer is for.
package stdio
