package pod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/actors/provider/mcpjson"
	"github.com/acpod/acpod/actors/session/delivery"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/process"
)

// Finding is one thing that `acpod doctor` looked at.
type Finding struct {
	Check   string `json:"check"`
	Verdict string `json:"verdict"` // ok, warning, broken
	Text    string `json:"text"`    // what was found and, where it is not ok, what to do
}

// Diagnose looks for what would stop a pod of this configuration from working, starts nothing that stays, and writes it out. It is an
// error when something is broken. failed is why the configuration could not be read; then that is all there is to say.
func Diagnose(o Options, failed error, asJSON bool, out io.Writer) error {
	var d diagnosis
	if failed != nil {
		d.broken("config", "%v", failed)
	} else {
		d.all(o)
	}
	if asJSON {
		if err := writeJSON(out, d.findings); err != nil {
			return err
		}
	} else if err := d.write(out); err != nil {
		return err
	}
	n := 0
	for _, f := range d.findings {
		if f.Verdict == "broken" {
			n++
		}
	}
	if n > 0 {
		return fmt.Errorf("%d of %d checks failed; the report says what to do", n, len(d.findings))
	}
	return nil
}

type diagnosis struct{ findings []Finding }

func (d *diagnosis) add(check, verdict, format string, args ...any) {
	text := strings.Join(strings.FieldsFunc(fmt.Sprintf(format, args...), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	d.findings = append(d.findings, Finding{check, verdict, text})
}

func (d *diagnosis) ok(check, format string, args ...any) { d.add(check, "ok", format, args...) }
func (d *diagnosis) warning(check, format string, args ...any) {
	d.add(check, "warning", format, args...)
}
func (d *diagnosis) broken(check, format string, args ...any) {
	d.add(check, "broken", format, args...)
}

func (d *diagnosis) write(out io.Writer) error {
	var b strings.Builder
	for _, f := range d.findings {
		word := f.Verdict
		if word == "broken" {
			word = "BROKEN"
		}
		fmt.Fprintf(&b, "%-8s %s: %s\n", word, f.Check, f.Text)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// all looks at everything, in the order in which a start would stumble over it.
func (d *diagnosis) all(o Options) {
	l := o.Config
	name := l.File
	if name == "" {
		name = "the built-in default"
	}
	d.ok("config", "%s is valid", shownName(name))
	for _, text := range configWarnings(l) {
		d.warning("config", "%s", text)
	}
	d.keyFiles(l)
	d.listeners(l)
	d.state(l, o.Environ)
	d.audit(l)
	d.agent(l, o)
	d.delivery(l, o)
	d.servers(l, o)
	d.memory(l, o)
	d.files(l)
	d.cgroup(l)
	d.guardian(o)
}

// keyFiles: that they can be read was found with the configuration.
func (d *diagnosis) keyFiles(l *config.Loaded) {
	paths := []string{l.ACP.AuthKeyFile}
	for _, k := range l.ACP.Keys {
		paths = append(paths, k.KeyFile)
	}
	if l.MCP != nil {
		paths = append(paths, l.MCP.AuthKeyFile)
	}
	for _, path := range paths {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			d.broken("key file", "%v; make it readable", err)
		case info.Mode().Perm()&0o077 != 0:
			d.warning("key file", "%s can be read by others (mode %04o); chmod 600 it", shownName(path), info.Mode().Perm())
		default:
			d.ok("key file", "%s", shownName(path))
		}
	}
}

// listeners opens each address that a pod would open, and closes it again.
func (d *diagnosis) listeners(l *config.Loaded) {
	for _, one := range []struct {
		key, listen string
		off         bool
	}{
		{"acp.listen", l.ACP.Listen, false}, {"mcp.listen", facadeListen(&l.Config), l.MCP == nil}, {"debug.listen", l.Debug.Listen, l.Debug.Listen == ""},
	} {
		if one.off {
			d.ok(one.key, "off")
			continue
		}
		socket, err := openSocket(one.listen)
		if err != nil {
			d.broken(one.key, "cannot listen on %q: %v; %s", one.listen, err, advice(err, one.key))
			continue
		}
		d.ok(one.key, "%s is free", one.listen)
		_ = socket.Close()
	}
}

func (d *diagnosis) state(l *config.Loaded, environ []string) {
	dir := stateDir(l.State, environ)
	if dir == "" {
		d.broken("state folder", "neither HOME nor XDG_STATE_HOME is set; set state.dir")
		return
	}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = writable(dir)
	}
	if err != nil {
		d.broken("state folder", "%v; set state.dir to a writable folder", err)
		return
	}
	d.ok("state folder", "%s can be written", shownName(dir))
}

// writable tries to make a file in a folder.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".acpod-doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func (d *diagnosis) audit(l *config.Loaded) {
	path := l.Audit.Path
	if path == "" {
		d.ok("audit", "goes to the log")
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	switch {
	case err == nil:
		_ = f.Close()
	case errors.Is(err, os.ErrNotExist):
		err = writable(filepath.Dir(path))
	}
	if err != nil {
		d.broken("audit", "%v; set audit.path to a file in a writable folder", err)
		return
	}
	d.ok("audit", "%s can be appended to", shownName(path))
}

func (d *diagnosis) agent(l *config.Loaded, o Options) {
	if l.Agent.Driver != "process" {
		d.ok("agent", "none: sessions only serve tools")
		return
	}
	command := agentCommand(l.Agent.Command, o.Executable)
	path, _ := lookup(agentEnv(l.Agent, o.Environ), "PATH")
	found, err := findProgram(command[0], path)
	if err != nil {
		d.broken("agent", "%v; correct agent.command or PATH", err)
		return
	}
	d.ok("agent", "%s", shownName(found))
}

// delivery looks for what leads around the policy, and for what would keep agents from their tools.
func (d *diagnosis) delivery(l *config.Loaded, o Options) {
	if l.Agent.Driver != "process" {
		return
	}
	c, err := deliveryConfig(l, o, stateDir(l.State, o.Environ), facadeAddress(l))
	if err != nil {
		d.broken("delivery", "%v", err)
		return
	}
	left, err := delivery.Examine(c)
	if err != nil {
		d.broken("leftovers", "agent.workdir: %v", err)
		return
	}
	for _, one := range left {
		switch {
		case one.Why == "":
			d.warning("leftovers", "%s leads an agent around the policy of this pod; a start of the pod removes that", shownName(one.Path))
		case l.Agent.AllowDirect:
			d.warning("leftovers", "%s may lead an agent around the policy of this pod (%s), which agent.allow_direct allows", shownName(one.Path), kernel.Escape(one.Why, 200))
		default:
			d.broken("leftovers", "%s may lead an agent around the policy of this pod: %s; remove it, or set agent.allow_direct = true: until then sessions have no tools", shownName(one.Path), kernel.Escape(one.Why, 200))
		}
	}
	if len(left) == 0 {
		d.ok("leftovers", "nothing in agent.workdir leads around the policy")
	}
	if l.MCP == nil {
		d.ok("delivery", "none: the configuration has no [mcp]")
		return
	}
	if err := delivery.Obstacle(c); err != nil {
		d.broken("delivery", "%v", err)
		return
	}
	deliverer := delivery.New(c)
	for _, text := range deliverer.ByHand() {
		d.warning("delivery", "%s", text)
	}
	until := ""
	if l.Agent.Profile == "auto" {
		until = ", until the agent says what it is"
	}
	d.ok("delivery", "%s, profile %s%s", l.Agent.Delivery, deliverer.Profile(nil).Name, until)
}

// facadeAddress is the address of the facade as far as it is known without a listener; "" = there is none.
func facadeAddress(l *config.Loaded) string {
	if l.MCP == nil {
		return ""
	}
	return "http://" + l.MCP.Listen + "/mcp"
}

// findProgram finds what a start would run: a path as it is, a name in the folders of PATH.
func findProgram(name, path string) (string, error) {
	if strings.ContainsRune(name, '/') {
		if _, err := exec.LookPath(name); err != nil {
			return "", fmt.Errorf("the command %q cannot be run: %w", name, errors.Unwrap(err))
		}
		return name, nil
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		full := filepath.Join(dir, name)
		if _, err := exec.LookPath(full); err == nil {
			return full, nil
		}
	}
	return "", fmt.Errorf("the command %q is in no folder of PATH (%s)", name, path)
}

func (d *diagnosis) servers(l *config.Loaded, o Options) {
	if l.MCP == nil {
		d.ok("mcp.json", "is not read: the configuration has no [mcp]")
		return
	}
	set := mcpjson.Read(serverFiles(o.Environ, o.MCPConfig))
	problems := serverProblems(&set, o.Environ)
	for _, p := range problems {
		if p.Warning {
			d.warning("mcp.json", "%s", p.Error())
		} else {
			d.broken("mcp.json", "%s", p.Error())
		}
	}
	if len(problems) == 0 {
		d.ok("mcp.json", "%d servers; acpod mcp doctor tries each", len(set.Servers))
	}
}

func (d *diagnosis) memory(l *config.Loaded, o Options) {
	p := worstCase(&l.Config, thisMachine(o.Executable))
	texts := memoryWarnings(p, operatorsLimit(), roomIn(here()))
	for _, text := range texts {
		d.warning("memory", "%s", text)
	}
	if len(texts) == 0 {
		d.ok("memory", "the worst case of the limits, %d MiB, fits", p.total()>>20)
	}
}

// files compares the open files that the limits may need with what this process may have.
func (d *diagnosis) files(l *config.Loaded) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return
	}
	need := uint64(publicConnections(l.Limits)) + uint64(facadeConnections(l.Limits)) + debugConnections + 8*uint64(l.Agent.MaxSessions) + 64
	if limit.Max < need {
		d.warning("open files", "%d are allowed, and the limits may need %d; raise it (ulimit -n, LimitNOFILE), or lower limits.connections", limit.Max, need)
		return
	}
	d.ok("open files", "%d are allowed", limit.Max)
}

// cgroup tells whether the limits of agents can be set.
func (d *diagnosis) cgroup(l *config.Loaded) {
	limits := agentLimits(l.Agent)
	if limits == (process.Limits{}) {
		d.ok("agent limits", "none are set")
		return
	}
	if err := process.ProbeCgroups(limits); err != nil {
		d.warning("agent limits", "%s (%v)", noLimits, err)
		return
	}
	d.ok("agent limits", "can be set, when the pod is alone in its cgroup")
}

// guardian starts the process that ends what a killed pod leaves, and ends it.
func (d *diagnosis) guardian(o Options) {
	g, err := process.StartGuardian(process.GuardianOptions{
		Command: []string{o.Executable, "guardian"}, Env: guardianEnv(o.Environ), Log: slog.New(slog.DiscardHandler),
	})
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = g.Close(ctx)
	}
	if err != nil {
		d.broken("guardian", "%v; processes of a killed pod would live on", err)
		return
	}
	d.ok("guardian", "starts")
}
