package provider

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/acpod/acpod/actors/provider/httplink"
	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/actors/provider/mcpjson"
	"github.com/acpod/acpod/actors/provider/stdio"
	"github.com/acpod/acpod/protocol/mcp"
)

// dial makes the link of a server, which connects when it is run.
func (c Config) dial(r mcpjson.Resolved, modern bool) (link.Link, error) {
	switch r.Kind {
	case mcpjson.Stdio:
		return stdio.New(stdio.Options{
			Command: append([]string{r.Command}, r.Args...), Dir: r.Dir, Env: environment(c.ChildEnv, r.Env),
			ResultBytes: c.ResultBytes, EOFGrace: eofGrace, TermGrace: c.StopGrace,
			Secrets: r.Secrets, Guardian: c.Guardian, Log: c.log(r.Name),
		}), nil
	case mcpjson.HTTP, mcpjson.SSE:
		o := httplink.Options{URL: r.URL, Headers: r.Headers, Old: r.Kind == mcpjson.SSE, Build: c.Version, ResultBytes: c.ResultBytes}
		if modern {
			o.Era = mcp.VersionModern
		}
		if err := o.Check(); err != nil {
			return nil, err
		}
		return httplink.New(o), nil
	}
	return nil, fmt.Errorf("a server of kind %v cannot be reached", r.Kind)
}

// log is where a server's stderr goes.
func (c Config) log(server string) *slog.Logger {
	log := c.Log
	if log == nil {
		log = slog.Default()
	}
	return slog.New(masking{log.With("server", server).Handler()})
}

// environment is all that a child sees: what every child has, and what its entry says, which wins.
func environment(common []string, own map[string]string) []string {
	env := slices.Clone(common)
	for name, value := range own {
		env = append(env, name+"="+value)
	}
	slices.Sort(env[len(common):])
	return env
}
