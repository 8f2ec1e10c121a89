package process

import (
	"bufio"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// guardianGrace is between TERM and KILL when the pod is gone. Twice of it, and the end of the guardian, fit into
// the five seconds after which nothing may live.
const guardianGrace = 2 * time.Second

// guardianReady is what a guardian writes to its stdout when it listens.
const guardianReady = "ready\n"

// RunGuardian is the whole life of the guardian process: it keeps the groups that it is told on stdin, and when
// that ends (the pod closed it, or is gone), it sends TERM to all that live, KILL after two seconds, and returns the
// exit status: 0, or 1 when something lives on. Signals do not end it, or a Ctrl-C at the pod would disarm it.
func RunGuardian(stdin io.Reader) int {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE)
	_ = os.Chdir("/") // it must not keep a folder busy
	_, _ = io.WriteString(os.Stdout, guardianReady)
	known := book{}
	lines := bufio.NewScanner(stdin)
	for lines.Scan() {
		known.apply(lines.Text())
	}
	if len(endGroups(known.groups(), guardianGrace)) > 0 {
		return 1
	}
	return 0
}
