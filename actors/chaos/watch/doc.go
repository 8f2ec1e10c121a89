// Package watch looks at the pod while it is attacked and afterwards: its log, line by line; its tree and metrics, once a second; its
// process. It compares what it sees with the promises and knows nothing of what is done to the pod.
package watch
