package stdio

import (
	"bufio"
	"encoding/json/v2"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain makes the test binary play the children of the tests: "role=NAME" as its first argument says which.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if role, ok := strings.CutPrefix(os.Args[1], "role="); ok {
			time.AfterFunc(2*time.Minute, func() { os.Exit(99) }) // whatever a failed test leaves
			os.Exit(play(role, os.Args[2:]))
		}
	}
	goleak.VerifyTestMain(m)
}

// quick is in every child's environment: the race detector makes each process sleep a second at its end.
const quick = "GORACE=atexit_sleep_ms=0"

func roleOf(t *testing.T, name string, args ...string) []string {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{path, "role=" + name}, args...)
}

func play(role string, args []string) int {
	switch role {
	case "say": // each argument, with escapes as in Go, once a line of stdin has come
		wait()
		for _, arg := range args {
			text, err := strconv.Unquote(`"` + arg + `"`)
			if err != nil {
				return 98
			}
			_, _ = io.WriteString(os.Stdout, text)
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "long": // an answer of so many bytes, then a short one
		wait()
		n, _ := strconv.Atoi(args[0])
		fmt.Printf(`{"jsonrpc":"2.0","id":"7","result":{"text":"%s"}}`+"\n", strings.Repeat("x", n))
		fmt.Printf(`{"jsonrpc":"2.0","id":"q","method":"roots/list","params":"%s"}`+"\n", strings.Repeat("x", n))
		fmt.Println(`{"jsonrpc":"2.0","id":"8","result":{}}`)
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Fprintf(os.Stderr, "%s", line)
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "echo": // each line as the params of a notification
		lines := bufio.NewScanner(os.Stdin)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			fmt.Printf(`{"jsonrpc":"2.0","method":"echo","params":%s}`+"\n", lines.Text())
		}
	case "env":
		list, _ := json.Marshal(os.Environ())
		fmt.Printf(`{"jsonrpc":"2.0","method":"env","params":%s}`+"\n", list)
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "lastwords": // answers and is gone
		wait()
		fmt.Println(`{"jsonrpc":"2.0","id":"1","result":{"last":true}}`)
		fmt.Fprintln(os.Stderr, "fatal: the password is swordfish\x1b[31m")
		return 3
	case "parent": // dies and leaves a child that has its stdout and heeds nothing
		child := exec.Command(os.Args[0], "role=stubborn")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			return 97
		}
		wait()
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Minute)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		fmt.Printf(`{"jsonrpc":"2.0","method":"here","params":%d}`+"\n", os.Getpid())
		time.Sleep(time.Minute)
	case "mute": // closes its stdout and stays
		_ = os.Stdout.Close()
		_ = syscall.Close(1)
		signal.Ignore(syscall.SIGPIPE)
		time.Sleep(time.Minute)
	case "deaf": // reads nothing
		fmt.Println(`{"jsonrpc":"2.0","method":"here"}`)
		time.Sleep(time.Minute)
	}
	return 0
}

// wait reads one line of stdin, and no byte more.
func wait() {
	b := []byte{0}
	for b[0] != '\n' {
		if n, err := os.Stdin.Read(b); n == 0 || err != nil {
			return
		}
	}
}
