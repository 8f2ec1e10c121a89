package main

import "runtime/debug"

// version is set by the linker of a release (-X main.version=…).
var version string

// programVersion is what reports name: the linker's word, else what the go command wrote into the binary.
func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
