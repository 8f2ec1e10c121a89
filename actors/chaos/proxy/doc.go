// Package proxy is a bad network between a client and a pod: a TCP relay on loopback that delays, throttles, cuts and goes silent.
//
// A [Link] is one relayed connection, made by [Dial] in place of a plain one. What it does to the bytes is said before by a [Plan] or
// while it runs by its methods. Because client and pod have sockets of their own, a link can leave either of them in the dark: a silent
// link acknowledges and passes nothing on, which is what a cut cable looks like, and a reset kills the pod's side while the client's
// still writes.
package proxy
