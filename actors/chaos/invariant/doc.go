// Package invariant is the book of what a pod promises whatever is done to it: the names of the promises, how often each was put to
// the test, and the first time that each was broken. A promise that was never tested is said to be so; it is not said to be held.
//
// It decides nothing: who sees something writes [Book.Exercise] when the promise was tested and kept, and [Book.Break] when it was not.
package invariant
