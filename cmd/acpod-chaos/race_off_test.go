//go:build !race

package main

var (
	raceFlag []string
	raceEnv  = []string{"CGO_ENABLED=0"}
)
