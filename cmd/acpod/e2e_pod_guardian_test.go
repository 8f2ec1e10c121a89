package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// guardian finds the guardian of a pod as ps shows it, or 0.
func (p *pod) guardian() int {
	p.t.Helper()
	for _, pid := range p.processes() {
		line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if words := bytes.Split(line, []byte{0}); err == nil && len(words) > 1 && strings.HasSuffix(string(words[0]), "acpod") && string(words[1]) == "guardian" {
			return pid
		}
	}
	return 0
}

// stat reads the fields of /proc/pid/stat after the name: state, ppid, pgrp, session, …
func stat(t *testing.T, pid int) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// The guardian is a process that an operator sees, in a session of its own. When it is killed another takes its place and is told
// what there is to guard: a kill -9 of the pod afterwards still leaves nothing.
func TestAKilledGuardianIsReplacedAndToldAgain(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	first := 0
	p.await("the guardian", func() bool { first = p.guardian(); return first != 0 })
	if got := stat(t, first)[3]; got != strconv.Itoa(first) {
		t.Errorf("the guardian %d is of session %s", first, got)
	}
	e := dial(t, p)
	session := e.open()
	e.prompt(session, "/fork") // in the agent's group, so the death of the agent alone would leave it
	e.sendPrompt(session, "/hang")
	agent := p.agentOf(session)
	if got := stat(t, agent)[2]; got != strconv.Itoa(agent) {
		t.Errorf("the agent %d is of group %s", agent, got)
	}
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second := 0
	p.await("another guardian", func() bool { second = p.guardian(); return second != 0 && second != first })
	p.await("word of it in the log", func() bool { return strings.Contains(p.log.String(), "runs and was told all groups") })
	if !strings.Contains(p.log.String(), "the guardian of child processes ended") {
		t.Errorf("the log says nothing of the first one's end:\n%s", p.log)
	}
	if err := p.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	start := time.Now()
	for end := start.Add(patience); len(p.processes()) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("processes %v outlived the pod", p.processes())
		}
	}
	t.Logf("all was gone %v after the kill; the contract gives 5 s", time.Since(start).Round(10*time.Millisecond))
}

// What a killed pod and its killed guardian left behind is ended by the next pod with the same state folder.
func TestTheNextPodEndsWhatAKilledOneLeft(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "state.dir", `"../state"`))
	e := dial(t, p)
	session := e.open()
	e.prompt(session, "/fork")
	e.sendPrompt(session, "/hang")
	p.agentOf(session)
	guardian := p.guardian()
	// The pod is stopped first, so that it cannot replace its guardian.
	p.signal(syscall.SIGSTOP)
	if err := syscall.Kill(guardian, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := p.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	if len(p.processes()) == 0 {
		t.Fatal("nothing was left: the test shows nothing")
	}
	next := startPod(t, with(baseConfig, "state.dir", `"`+filepath.Join(p.home, "state")+`"`))
	for end := time.Now().Add(patience); len(p.processes()) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("processes %v live on", p.processes())
		}
	}
	if !strings.Contains(next.log.String(), "an earlier pod had left") {
		t.Errorf("the log says nothing of it:\n%s", next.log)
	}
}
