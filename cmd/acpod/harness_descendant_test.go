package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// descendantMode makes this test binary an agent that does what prompts say to find out what it can, and the helpers that it starts.
const descendantMode = "ACPOD_E2E_DESCENDANT"

func init() {
	switch os.Getenv(descendantMode) {
	case "":
	case "agent":
		os.Exit(runDescendant())
	case "middle": // starts a helper out of everything, and ends
		helper := again("helper", os.Args[1:]...)
		helper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if helper.Start() != nil {
			os.Exit(92)
		}
		os.Exit(0)
	case "helper":
		text := ""
		for text == "" { // until it is an orphan of the pod
			if parent, _ := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/comm"); string(parent) == "acpod\n" {
				text = dialPod(os.Args[1])
			}
			time.Sleep(5 * time.Millisecond)
		}
		_ = os.WriteFile(os.Args[2]+".new", []byte(fmt.Sprintln(os.Getpid(), text)), 0o644)
		_ = os.Rename(os.Args[2]+".new", os.Args[2])
		time.Sleep(10 * time.Minute)
		os.Exit(0)
	}
}

func again(mode string, arguments ...string) *exec.Cmd {
	self, _ := os.Executable()
	command := exec.Command(self, arguments...)
	command.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, descendantMode+"=") }), descendantMode+"="+mode)
	return command
}

// runDescendant answers prompts: `dial ADDR` tries to get into the pod; `leave ADDR FILE` lets a helper try that, which first leaves
// group, session and parent and then stays; `look` tells what it was given and what it can read of the pod.
func runDescendant() int {
	say := func(format string, values ...any) { fmt.Printf(format+"\n", values...) }
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var f struct {
			ID     json.RawMessage
			Method string
			Params struct{ Prompt []struct{ Text string } }
		}
		if json.Unmarshal(lines.Bytes(), &f) != nil {
			return 91
		}
		switch f.Method {
		case "initialize":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{"mcpCapabilities":{"http":true}}}}`, f.ID)
		case "session/new":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"theirs"}}`, f.ID)
		case "session/prompt":
			words := strings.Fields(f.Params.Prompt[0].Text)
			text := "?"
			switch words[0] {
			case "dial":
				text = dialPod(words[1])
			case "leave":
				text = "left"
				if err := again("middle", words[1:]...).Run(); err != nil {
					text = err.Error()
				}
			case "look":
				text = lookAround()
			}
			quoted, _ := json.Marshal(text)
			say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"theirs","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%s}}}}`, quoted)
			say(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, f.ID)
		}
	}
	return 0
}

// dialPod gives the first line of what an upgrade is answered, and the body.
func dialPod(addr string) string {
	conn, err := net.DialTimeout("tcp", addr, 20*time.Second)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(conn, "GET /acp HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", addr)
	reader := bufio.NewReader(conn)
	status, err := reader.ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(status)
}

// lookAround is one line for each thing that the agent has or could read.
func lookAround() string {
	var found []string
	fds, _ := os.ReadDir("/proc/self/fd")
	for _, fd := range fds {
		target, err := os.Readlink("/proc/self/fd/" + fd.Name())
		if n, _ := strconv.Atoi(fd.Name()); err != nil || n <= 2 || strings.HasPrefix(target, "anon_inode") || strings.HasPrefix(target, "/sys/") {
			continue // the three pipes, the folder that is just read, and the Go runtime's own
		}
		found = append(found, "fd "+fd.Name()+" "+target)
	}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		found = append(found, "env "+name)
	}
	parent := "/proc/" + strconv.Itoa(os.Getppid())
	for _, file := range []string{"/environ", "/mem", "/maps"} {
		f, err := os.Open(parent + file)
		if err == nil {
			_, err = f.Read(make([]byte, 1))
			f.Close()
		}
		if !os.IsPermission(err) {
			found = append(found, fmt.Sprintf("pod %s: %v", file, err))
		}
	}
	if entries, err := os.ReadDir(parent + "/fd"); err == nil {
		found = append(found, fmt.Sprintf("pod %d descriptors", len(entries)))
	}
	return strings.Join(found, "\n")
}

// unprivileged runs the pod under a user that may not look into everything, with programs that this user can reach: the pod's home
// gets acpod and, as agent, this test binary.
func unprivileged(t *testing.T) setting {
	return func(command *exec.Cmd) {
		home := filepath.Dir(command.Dir)
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		for name, program := range map[string]string{"acpod": builtBinary, "agent": self} {
			if err := os.Link(program, filepath.Join(home, name)); err != nil {
				text, err := os.ReadFile(program)
				if err == nil {
					err = os.WriteFile(filepath.Join(home, name), text, 0o755)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		command.Path = filepath.Join(home, "acpod")
		if os.Getuid() != 0 {
			return
		}
		const nobody = 65534
		for _, path := range []string{home, command.Dir, filepath.Join(home, "acpod.toml")} {
			if err := os.Chown(path, nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Dir(home), 0o711); err != nil {
			t.Fatal(err)
		}
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}
