//go:build race

package main

// Where the tests look for races, the binary that they drive does too.
var (
	raceFlag = []string{"-race"}
	raceEnv  = []string{"CGO_ENABLED=1"}
)
