//go:build !race

package main

var raceFlag, raceEnv []string
