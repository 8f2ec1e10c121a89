// Package redact takes secrets out of what others wrote before it is shown. It is pure: bytes in, bytes out, no goroutine, no
// clock.
//
// # Its parts
//
//   - [Text] is for the texts of errors: whatever looks like a credential by its name, its form, or its place in a URL becomes
//     [Mask]. [TextWith] also takes out secrets that are known, as those of the configuration.
//   - [Rules] are the operator's, for the results of calls: patterns whose matches become [Mask] in the texts of a result, in one pass
//     over its JSON. Where nothing matches the result is the same slice. Data of images and audio is never looked at.
//
// Both take time in proportion to what they read, whoever wrote it: RE2 has no other way, and nothing looks back further than a
// few bytes.
//
// # What it does not know
//
// What a result is for, who called, what is logged. It guarantees no secrecy: a server that wants to tell a secret can write it backwards.
package redact

// Mask stands where something was taken out.
const Mask = "***"
