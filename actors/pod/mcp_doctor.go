package pod

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/provider"
	"github.com/acpod/acpod/actors/provider/mcpjson"
	"github.com/acpod/acpod/runtime/kernel"
)

// doctorPatience is how long `mcp doctor` waits for servers to connect and list.
const doctorPatience = 30 * time.Second

// ServerReport is what `mcp doctor --json` says.
type ServerReport struct {
	Files    []string          `json:"files"` // that were read, or were to be
	Problems []string          `json:"problems"`
	Warnings []string          `json:"warnings"`
	Servers  []DiagnosedServer `json:"servers"`
}

// DiagnosedServer is one server of it.
type DiagnosedServer struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"`
	Verdict  string   `json:"verdict"` // ok, broken, disabled
	Offered  int      `json:"offered"` // tools that agents are offered
	Filtered int      `json:"filtered"`
	Held     int      `json:"held_back"`
	Problems []string `json:"problems"` // of what is broken; of a server that is ok, what does not keep it from working
	File     string   `json:"file"`
	Line     int      `json:"line"`
}

// DiagnoseServers looks at every file and tries every server, and writes down what is wrong. It is an error when something is broken.
func DiagnoseServers(ctx context.Context, o Options, asJSON bool, out io.Writer) error {
	var report ServerReport
	err := operate(ctx, o, nil, func(ctx context.Context, op *operator) error {
		if err := op.settle(ctx, doctorPatience); err != nil {
			return err
		}
		report = op.diagnose()
		return nil
	})
	if err != nil {
		return err
	}
	if asJSON {
		err = writeJSON(out, report)
	} else {
		err = report.write(out)
	}
	if err != nil {
		return err
	}
	return report.verdict()
}

func (op *operator) diagnose() ServerReport {
	report := ServerReport{Files: []string{}, Problems: []string{}, Warnings: []string{}, Servers: []DiagnosedServer{}}
	for _, layer := range serverFiles(op.opts.Environ, op.opts.MCPConfig) {
		report.Files = append(report.Files, layer.Path)
	}
	env := variables(op.opts.Environ)
	_, roots := op.set.Folders(env, ".")
	for _, p := range append(slices.Clone(op.set.Problems), roots...) {
		if p.Warning {
			report.Warnings = append(report.Warnings, p.Error())
		} else {
			report.Problems = append(report.Problems, p.Error())
		}
	}
	counts := op.toolCounts()
	for _, l := range op.listed() {
		d := DiagnosedServer{Name: l.Name, Type: l.Type, Verdict: "ok", Offered: len(l.Tools), Filtered: counts[l.Name].filtered, Held: max(0, counts[l.Name].listed-len(l.Tools)),
			Problems: []string{}, File: l.File, Line: l.Line}
		entry, enabled := serverNamed(op.set.Servers, l.Name)
		switch {
		case !enabled:
			d.Verdict = "disabled"
		default:
			resolved, err := entry.Resolve(env)
			if err != nil {
				d.Verdict, d.Problems = "broken", append(d.Problems, problemOf(entry, err).Error())
				break
			}
			if l.State == "pending" {
				d.Verdict, d.Problems = "broken", append(d.Problems, fmt.Sprintf("it has not answered within %v", doctorPatience))
			}
			if l.Error != "" { // of one that has tools it says what of them is left out or held back
				d.Problems = append(d.Problems, masked(l.Error, resolved.Secrets))
			}
			if l.State == "needs_login" || l.State == "unavailable" && !counts[l.Name].ready {
				d.Verdict = "broken"
			}
		}
		report.Servers = append(report.Servers, d)
	}
	return report
}

func serverNamed(list []mcpjson.Server, name string) (*mcpjson.Server, bool) {
	for i := range list {
		if list[i].Name == name {
			return &list[i], true
		}
	}
	return nil, false
}

// masked takes secrets out of a text that is shown. The providers have done so already; this is for who comes after them.
func masked(text string, secrets []string) string {
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

// write is the report for people: what is fine in one line, what is not with its reasons below.
func (r ServerReport) write(out io.Writer) error {
	var b strings.Builder
	for _, file := range r.Files {
		fmt.Fprintf(&b, "reads    %s\n", shownName(file))
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "BROKEN   %s\n", p)
	}
	for _, p := range r.Warnings {
		fmt.Fprintf(&b, "warning  %s\n", p)
	}
	for _, s := range r.Servers {
		word := map[string]string{"ok": "ok", "broken": "BROKEN", "disabled": "off"}[s.Verdict]
		fmt.Fprintf(&b, "%-8s %s (%s, %s:%d)", word, s.Name, s.Type, shownName(s.File), s.Line)
		if s.Verdict == "ok" {
			fmt.Fprintf(&b, ": %d offered", s.Offered)
			if s.Filtered > 0 {
				fmt.Fprintf(&b, ", %d left out by tool_filter", s.Filtered)
			}
			if s.Held > 0 {
				fmt.Fprintf(&b, ", %d held back", s.Held)
			}
		}
		b.WriteByte('\n')
		for _, p := range s.Problems {
			fmt.Fprintf(&b, "         %s\n", p)
		}
	}
	if len(r.Servers) == 0 && len(r.Problems) == 0 {
		b.WriteString("no server is configured; docs/providers.md says how one is\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// verdict is the error of a report in which something is broken.
func (r ServerReport) verdict() error {
	broken := 0
	for _, s := range r.Servers {
		if s.Verdict == "broken" {
			broken++
		}
	}
	switch {
	case broken > 0:
		return fmt.Errorf("%d of %d servers cannot be used; the report says why", broken, len(r.Servers))
	case len(r.Problems) > 0:
		return fmt.Errorf("mcp.json has %d mistakes; the report says which", len(r.Problems))
	}
	return nil
}

// toolCount is what a provider's actor says of its list.
type toolCount struct {
	ready            bool // it is connected
	listed, filtered int  // what its filter let through; what it left out
}

// toolCounts reads them from the tree, where the instance that the desk has of an isolated server stands as well.
func (op *operator) toolCounts() map[string]toolCount {
	out := map[string]toolCount{}
	op.kernel.Walk(func(n kernel.Node, _ int) bool {
		if n.Kind != provider.Kind {
			return true
		}
		c := out[n.Name]
		if n.Attrs["state"] == capability.Ready.String() {
			c.ready = true
			c.listed, _ = n.Attrs["tools"].(int)
			c.filtered, _ = n.Attrs["filtered"].(int)
		}
		out[n.Name] = c
		return true
	})
	return out
}
