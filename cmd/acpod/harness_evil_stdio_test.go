package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// evilProcess is the evil server as a child: it ends when its stdin does, unless its script has it otherwise.
func evilProcess(file string) int {
	var script evilScript
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &script)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 64
	}
	if script.IgnoreTerm {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	}
	if script.Sleeper {
		script.write("sleeper", "")
		time.Sleep(10 * patience)
		return 0
	}
	script.write("start", fmt.Sprint(os.Getppid()))
	if script.Stderr != "" {
		fmt.Fprintln(os.Stderr, script.Stderr)
	}
	if script.Exit != 0 {
		return script.Exit
	}
	if script.Lock != "" && !lock(script.Lock) {
		fmt.Fprintln(os.Stderr, "another one has the lock")
		return 3
	}
	for range script.Children {
		if err := spawnSleeper(script); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 65
		}
	}
	time.Sleep(script.StartAfter)
	newEvilCore(script).stdio()
	script.write("eof", "")
	for script.IgnoreEOF {
		time.Sleep(patience)
	}
	return 0
}

// lock takes a file for as long as this process lives.
func lock(path string) bool {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false
	}
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil // held by the descriptor, which is never closed
}

// spawnSleeper leaves a grandchild, of nobody's any more, that ignores TERM and keeps stdout open.
func spawnSleeper(script evilScript) error {
	script.Sleeper, script.IgnoreTerm = true, true
	file := script.Journal + ".sleeper"
	if err := script.save(file); err != nil {
		return err
	}
	path, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.Command("sh", "-c", `"$0" "$1" &`, path, file)
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	return child.Run()
}

// stdio serves lines until stdin ends.
func (e *evil) stdio() {
	var mu sync.Mutex
	out := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = os.Stdout.WriteString(text + "\n")
	}
	if e.script.Banner {
		out(junk)
	}
	if e.script.StormEvery > 0 {
		go func() {
			for range time.Tick(e.script.StormEvery) {
				out(listChanged("tools"))
			}
		}()
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadString('\n')
		select {
		case <-e.deaf:
			select {}
		default:
		}
		var f frame
		if json.Unmarshal([]byte(line), &f) == nil {
			f.raw = line
			if f.Method == "notifications/cancelled" || f.Method == "" {
				e.hear(f, out)
			} else {
				go e.hear(f, out)
			}
		}
		if err != nil {
			return
		}
	}
}
