package scale

import (
	"bufio"
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/acpod/acpod/actors/chaos/wire"
)

// theEcho is the echo server in a process of its own. It ends when its standard input does, and so with this process.
type theEcho struct {
	command *exec.Cmd
	stdin   io.Closer
	at      EchoAt
	filler  string
	http    *http.Client
}

func startEcho(o *Options, message int) (*theEcho, error) {
	command := exec.Command(o.Echo[0], o.Echo[1:]...)
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's interrupt is for us: we end it
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start the echo server: %w", err)
	}
	e := &theEcho{command: command, stdin: stdin, filler: filler(message), http: newHTTP()}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &e.at)
	}
	if err != nil {
		_ = e.close()
		return nil, fmt.Errorf("the echo server did not say where it listens: %w", err)
	}
	return e, nil
}

// close ends the process and waits for it.
func (e *theEcho) close() error {
	e.http.CloseIdleConnections()
	_ = e.stdin.Close()
	late := time.AfterFunc(restLimit, func() { _ = e.command.Process.Kill() })
	defer late.Stop()
	if err := e.command.Wait(); err != nil {
		return fmt.Errorf("the echo server: %w", err)
	}
	return nil
}

func (e *theEcho) name() string { return "echo" }
func (e *theEcho) pid() int     { return e.command.Process.Pid }

func (e *theEcho) collect(ctx context.Context) (r Runtime, err error) {
	for range 2 { // as often as the pod
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.at.Debug, nil)
		if err != nil {
			return r, err
		}
		response, err := e.http.Do(request)
		if err != nil {
			return r, err
		}
		err = json.UnmarshalRead(response.Body, &r)
		_ = response.Body.Close()
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

func (e *theEcho) dial(ctx context.Context, _ int) (client, error) {
	c, err := dialEcho(ctx, wire.Dial{URL: "ws://" + e.at.Echo + "/", Protocols: []string{}, Timeout: answerLimit}, e.filler)
	if err != nil {
		return nil, err
	}
	return c, nil
}
