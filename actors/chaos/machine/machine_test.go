package machine

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// writer is a program on a disk that appends a line to the audit file for each line that it is told, and says whether it could.
type writer struct {
	t     *testing.T
	in    io.WriteCloser
	lines *bufio.Scanner
	pid   int
}

func startWriter(t *testing.T, d *Disk, readonly bool) *writer {
	t.Helper()
	program, err := d.Wrap("/bin/sh", readonly)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "-c", `while read line; do if (echo "$line" >> "`+d.Place().Audit+`") 2>/dev/null; then echo yes; else echo no; fi; done`)
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = command.Wait()
	})
	d.Bind(command.Process.Pid)
	return &writer{t, in, bufio.NewScanner(out), command.Process.Pid}
}

func (w *writer) append(line string) bool {
	w.t.Helper()
	fmt.Fprintln(w.in, line)
	if !w.lines.Scan() {
		w.t.Fatalf("the program has ended: %v", w.lines.Err())
	}
	return w.lines.Text() == "yes"
}

// disks gives the disk that this machine allows, and the one with links, which every machine does.
func disks(t *testing.T) map[string]*Disk {
	t.Helper()
	best, err := NewDisk(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	links, err := NewDisk(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	links.how, links.enter = nil, nil
	return map[string]*Disk{"links": links, "the best": best}
}

func TestADiskIsFullAndReadOnlyAndWellAgain(t *testing.T) {
	for name, d := range disks(t) {
		t.Run(name, func(t *testing.T) {
			w := startWriter(t, d, false)
			long := strings.Repeat("x", 5000)
			step := func(what string, do func() error, writes bool) {
				t.Helper()
				if err := do(); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if w.append(long) != writes {
					t.Errorf("%s: a line was written: %t", what, !writes)
				}
			}
			step("at first", func() error { return nil }, true)
			step("full", d.Fill, false)
			step("drained", d.Drain, true)
			step("read-only", d.ReadOnly, false)
			step("writable", d.Writable, true)
			step("full again", d.Fill, false)
			step("drained again", d.Drain, true)
			text, err := d.Audit()
			if whole := strings.Count(string(text), long+"\n"); err != nil || whole < 3 {
				t.Errorf("%d whole lines stand in the file, %v", whole, err)
			}
		})
	}
}

func TestADiskIsReadOnlyFromTheStart(t *testing.T) {
	d := disks(t)["the best"]
	if _, readonly, why := d.Supported(); !readonly {
		t.Logf("not on this machine: %s", why)
		return
	}
	if startWriter(t, d, true).append("x") {
		t.Error("a line was written")
	}
}

func TestAJumpIsTimeThatTheProcessDoesNotHave(t *testing.T) {
	d := disks(t)["links"]
	w := startWriter(t, d, false)
	w.append("before")
	began := time.Now()
	done := make(chan error, 1)
	go func() { done <- Jump(context.Background(), w.pid, 300*time.Millisecond) }()
	time.Sleep(100 * time.Millisecond) // it is stopped by then, or the line below is simply answered at once
	if !w.append("after") {
		t.Error("it did not go on")
	}
	if err := <-done; err != nil || time.Since(began) < 300*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Jump(ended, w.pid, time.Hour); err != nil || !w.append("again") {
		t.Errorf("a jump whose run is over: %v", err)
	}
}
