package pod

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Start starts a pod and returns when all of its listeners serve. When it does not come up the error has the end of its log.
func Start(ctx context.Context, s Spec) (*Pod, error) {
	work := filepath.Join(s.Dir, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return nil, err
	}
	config, ready := filepath.Join(s.Dir, "acpod.toml"), filepath.Join(s.Dir, "ready.json")
	if err := os.WriteFile(config, []byte(s.TOML), 0o600); err != nil {
		return nil, err
	}
	binary, err := filepath.Abs(s.Binary)
	if err != nil {
		return nil, err
	}
	command := exec.Command(binary, append([]string{"serve", "--config", config, "--ready-file", ready, "--log-format", "json"}, s.Args...)...)
	command.Dir = work
	command.Env = append([]string{"HOME=" + s.Dir, "PATH=" + os.Getenv("PATH"), "USER=chaos"}, s.Env...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := &Pod{dir: s.Dir, ended: make(chan struct{}), client: newClient(), log: newLog(filepath.Join(s.Dir, "pod.log"))}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	command.Stderr, command.Stdout = write, write
	if err := command.Start(); err != nil {
		read.Close()
		write.Close()
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	write.Close()
	p.process = command.Process
	go p.log.read(read)
	go func() {
		_ = command.Wait()
		p.state = command.ProcessState
		close(p.ended)
	}()
	if err := p.awaitReady(ctx, ready); err != nil {
		p.kill()
		p.log.end()
		return nil, fmt.Errorf("the pod did not come up: %w; the end of its log: %s", err, strings.Join(p.LogTail(5), " | "))
	}
	p.watchEvents()
	return p, nil
}

// Attach is a pod that runs already: the URL of its /acp, the URL of its debug listener ("" for none) and the key of /acp ("" for none).
func Attach(target, debug, key string) *Pod {
	p := &Pod{
		public: hostOf(target), debug: hostOf(debug), key: key, ended: make(chan struct{}), client: newClient(), log: newLog(""),
	}
	p.watchEvents()
	return p
}

// AttachKeyed is Attach for a debug listener that asks for a key of its own.
func AttachKeyed(target, debug, key, debugKey string) *Pod {
	p := Attach(target, "", key)
	p.debug, p.debugKey = hostOf(debug), debugKey
	p.watchEvents()
	return p
}

func hostOf(url string) string {
	_, rest, found := strings.Cut(url, "://")
	if !found {
		rest = url
	}
	host, _, _ := strings.Cut(rest, "/")
	return host
}

func (p *Pod) awaitReady(ctx context.Context, file string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		text, err := os.ReadFile(file)
		if err == nil {
			var at struct {
				Public string `json:"public"`
				Facade string `json:"facade"`
				Debug  string `json:"debug"`
			}
			if err := json.Unmarshal(text, &at); err != nil {
				return fmt.Errorf("ready file: %w", err)
			}
			p.public, p.facade, p.debug = at.Public, at.Facade, at.Debug
			return nil
		}
		select {
		case <-p.ended:
			return errors.New(p.state.String())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Stop ends a pod that we started, with SIGTERM and, when ctx ends before it does, by killing its process group. The exit status is
// -1 after a signal. A pod that runs already is left alone.
func (p *Pod) Stop(ctx context.Context) (exit int, err error) {
	p.stop.Do(func() {
		if p.ring != nil {
			p.ring.stop()
		}
		p.client.CloseIdleConnections()
	})
	if p.process == nil {
		return 0, nil
	}
	_ = p.process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.kill()
		err = fmt.Errorf("the pod did not stop after SIGTERM: %w", ctx.Err())
	}
	p.log.end()
	return p.state.ExitCode(), err
}

// Quit asks the Go runtime of the pod for the stacks of its goroutines, which end it and go to its log.
func (p *Pod) Quit() {
	if p.process != nil {
		_ = p.process.Signal(syscall.SIGQUIT)
	}
}

func (p *Pod) kill() {
	_ = syscall.Kill(-p.process.Pid, syscall.SIGKILL)
	<-p.ended
}
