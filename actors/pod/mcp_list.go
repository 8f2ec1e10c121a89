package pod

import (
	"cmp"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/provider/mcpjson"
	"github.com/acpod/acpod/runtime/kernel"
)

// listPatience is how long `mcp list` waits for servers that take their time.
const listPatience = 15 * time.Second

// ListedServer is one server of mcp.json as `mcp list --json` tells it.
type ListedServer struct {
	Name  string       `json:"name"`
	Type  string       `json:"type"`
	State string       `json:"state"` // ready, pending, needs_login, unavailable, disabled
	Error string       `json:"error,omitzero"`
	Tools []ListedTool `json:"tools"`
	File  string       `json:"file"`
	Line  int          `json:"line"`
}

// ListedTool is one tool that agents are offered.
type ListedTool struct {
	Name         string `json:"name"` // as agents call it
	Published    string `json:"published"`
	Risk         string `json:"risk"`
	Availability string `json:"availability"`
}

// ListServers connects every server of mcp.json, lists what agents are offered, and writes it out.
func ListServers(ctx context.Context, o Options, asJSON bool, out, notes io.Writer) error {
	return operate(ctx, o, notes, func(ctx context.Context, op *operator) error {
		if err := op.settle(ctx, listPatience); err != nil {
			return err
		}
		list := op.listed()
		if asJSON {
			return writeJSON(out, list)
		}
		if len(list) == 0 {
			_, err := fmt.Fprintln(out, "no server is configured; docs/providers.md says how one is")
			return err
		}
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "SERVER\tTYPE\tSTATE\tTOOLS\tDEFINED IN\tREASON")
		for _, s := range list {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s:%d\t%s\n", s.Name, s.Type, s.State, len(s.Tools), s.File, s.Line, s.Error)
		}
		return w.Flush()
	})
}

// listed is every server, by name, with what the desk shows of it.
func (op *operator) listed() []ListedServer {
	view := op.deskView()
	list := []ListedServer{}
	at := map[string]int{}
	add := func(servers []mcpjson.Server, state string) {
		for _, s := range servers {
			list = append(list, ListedServer{Name: s.Name, Type: s.Kind.String(), State: state, Tools: []ListedTool{}, File: s.File, Line: s.Line})
		}
	}
	add(op.set.Servers, "ready")
	add(op.set.Disabled, "disabled")
	slices.SortFunc(list, func(a, b ListedServer) int { return cmp.Compare(a.Name, b.Name) })
	for i, s := range list {
		at[s.Name] = i
	}
	for _, name := range view.Pending() {
		if i, ok := at[name]; ok {
			list[i].State = "pending"
		}
	}
	for _, c := range view.Catalog() {
		if i, ok := at[c.Server]; ok {
			list[i].Tools = append(list[i].Tools, ListedTool{
				Name: c.Name, Published: kernel.Escape(c.Tool.Name, 128), Risk: c.Tool.Risk(), Availability: string(c.Availability),
			})
		}
	}
	for _, u := range view.Unavailable() {
		if i, ok := at[u.Provider]; ok {
			reason := strings.TrimLeft(strings.TrimPrefix(u.Error, u.Provider), ": ")
			if list[i].Error != "" {
				reason = list[i].Error + "; " + reason
			}
			list[i].Error = reason
			list[i].State = stateOf(list[i].Tools)
		}
	}
	return list
}

// stateOf is where a server stands of which something is not there: its tools say whether they can be called.
func stateOf(tools []ListedTool) string {
	for _, t := range tools {
		switch capability.Availability(t.Availability) {
		case capability.Available:
			return "ready"
		case capability.LoginNeeded:
			return "needs_login"
		}
	}
	return "unavailable"
}

// writeJSON writes one value for programs, indented for people.
func writeJSON(out io.Writer, v any) error {
	text, err := json.Marshal(v, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	_, err = out.Write(append(text, '\n'))
	return err
}

// searchText runs one search and gives its text.
func (op *operator) searchText(ctx context.Context, q capability.Query) ([]byte, error) {
	text, lease, err := capability.Search(ctx, op.caller(), q)
	if err != nil {
		return nil, err
	}
	defer lease.Release()
	return slices.Clone(text), nil
}
