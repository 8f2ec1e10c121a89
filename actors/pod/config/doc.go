// Package config reads acpod.toml and says, for every problem, where it is and what is allowed.
//
// Four layers are read, and the later one wins: the documented defaults, one TOML file, the environment, the command
// line. Each layer is checked strictly against the same schema (the struct tags of [Config]) before it reaches koanf, so an
// unknown key, a wrong type or a value out of range is one [Error] that names the file and line, the environment variable
// or the flag, then the key, then what is allowed there. What passed is merged by koanf and decoded once more into [Config].
//
// The package knows no other package of the project: it is text in, values out. It reads the configuration file and the key
// files that the configuration names, and nothing else; it opens no socket and starts nothing. Which section goes to which
// actor is the pod's business.
//
// Where a value came from is kept for every key ([Loaded.Origins]), because the first question about a running pod is not
// what a limit is but who set it.
package config
