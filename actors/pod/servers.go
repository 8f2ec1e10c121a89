package pod

import (
	"errors"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/actors/provider"
	"github.com/acpod/acpod/actors/provider/mcpjson"
	"github.com/acpod/acpod/runtime/process"
)

// readServers reads mcp.json. A pod without a facade has nobody who could use a server.
func readServers(l *config.Loaded, o Options) mcpjson.Set {
	if l.MCP == nil {
		if len(o.MCPConfig) > 0 {
			o.Log.Warn("--mcp-config has no effect: the configuration has no [mcp], so there is no facade that would show a server")
		}
		return mcpjson.Set{}
	}
	return mcpjson.Read(serverFiles(o.Environ, o.MCPConfig))
}

// tellProblems logs what is wrong with the servers, a record each.
func tellProblems(set *mcpjson.Set, o Options) {
	for _, p := range serverProblems(set, o.Environ) {
		tellProblem(o.Log, p)
	}
}

// serverFiles are the mcp.json that are read: those named, or where people keep them.
func serverFiles(environ, named []string) []mcpjson.Layer {
	home, _ := lookup(environ, "HOME")
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	return mcpjson.Layers(home, dir, named)
}

// serverProblems is all that can be known to be wrong with the servers before one is started: of their files, and of variables.
func serverProblems(set *mcpjson.Set, environ []string) []mcpjson.Problem {
	env := variables(environ)
	problems := append([]mcpjson.Problem{}, set.Problems...)
	for i := range set.Servers {
		if _, err := set.Servers[i].Resolve(env); err != nil {
			problems = append(problems, problemOf(&set.Servers[i], err))
		}
	}
	_, roots := set.Folders(env, ".")
	return append(problems, roots...)
}

// problemOf is why an entry cannot be used as things are.
func problemOf(s *mcpjson.Server, err error) mcpjson.Problem {
	if field, ok := errors.AsType[*mcpjson.FieldError](err); ok {
		return field.Problem()
	}
	return mcpjson.Problem{File: s.File, Line: s.Line, Server: s.Name, Text: err.Error()}
}

// tellProblem is one record of the log. It never holds a value.
func tellProblem(log *slog.Logger, p mcpjson.Problem) {
	args := []any{"problem", p.Text, "file", p.File}
	if p.Line > 0 {
		args = append(args, "line", p.Line)
	}
	if p.Column > 0 {
		args = append(args, "column", p.Column)
	}
	if p.Server != "" {
		args = append(args, "server", p.Server)
	}
	log.Warn("mcp.json", args...)
}

// variables looks a name up in an environment.
func variables(environ []string) func(string) (string, bool) {
	return func(name string) (string, bool) { return lookup(environ, name) }
}

// serverEnv is what every child of a provider gets, beside what its entry sets.
func serverEnv(environ []string) []string {
	var env []string
	for _, name := range []string{"HOME", "PATH", "TERM", "USER"} {
		if value, ok := lookup(environ, name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// providerConfig turns mcp.json and sections of the configuration into the providers' own Config.
func providerConfig(l *config.Loaded, set mcpjson.Set, o Options, guardian *process.Guardian) provider.Config {
	env := variables(o.Environ)
	dir, err := os.Getwd()
	if err != nil {
		dir = "/"
	}
	roots, _ := set.Folders(env, dir) // what is wrong was told when they were read
	c := provider.Config{
		Set: set, Env: env, Guardian: guardian, ChildEnv: serverEnv(o.Environ), Roots: roots, Version: o.Version,
		Bytes: int64(l.Limits.ProviderBytes), ResultBytes: int64(l.Limits.ResultBytes), SchemaBytes: int(l.Limits.ToolSchemaBytes),
		StopGrace: l.Agent.StopGrace, Log: o.Log,
	}
	if l.MCP != nil {
		c.CallMax = l.MCP.CallMax
	}
	return c
}

// shownName keeps a path that is plain text and quotes any other.
func shownName(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(path)
	}
	return path
}
