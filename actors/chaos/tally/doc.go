// Package tally is how the harness reports on a peer that it checked, row by row: what was expected, what came, and whether that
// passed, failed or was not asked. conform (of a pod) and clientcheck (of a client) fill it; it knows neither.
//
// What a peer wrote stands in a row quoted and cut, on one line: that is for whoever fills it to see to (jsonrpc.Show).
package tally
