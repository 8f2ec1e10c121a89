//go:build race

package main

// Where the tests look for races, the watched programs do too.
var (
	raceFlag = []string{"-race"}
	raceEnv  = []string{"CGO_ENABLED=1"}
)
