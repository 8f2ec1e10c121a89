package pod

import (
	"bufio"
	"io"
	"os"
	"sync"
	"time"
)

// keptLines is how many lines of a pod's log are at hand.
const keptLines = 400

// log takes what a pod writes to stderr, line by line and as the bytes came.
type log struct {
	path string
	done chan struct{} // closed at the end of the stream

	mu    sync.Mutex
	heard []func(line string)
	tail  []string
}

func newLog(path string) *log { return &log{path: path, done: make(chan struct{})} }

// read hands out lines until the writers have closed. It also keeps them in the file, which is what a person looks at.
func (l *log) read(from io.ReadCloser) {
	defer close(l.done)
	defer from.Close()
	keep := io.Discard
	if file, err := os.Create(l.path); err == nil {
		defer file.Close()
		keep = file
	}
	lines := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			_, _ = io.WriteString(keep, line)
			l.add(line)
		}
		if err != nil {
			return
		}
	}
}

// end waits until the log is read to its end. A process that outlived the pod and has its standard error is not waited for.
func (l *log) end() {
	select {
	case <-l.done:
	case <-time.After(5 * time.Second):
	}
}

func (l *log) add(line string) {
	if n := len(line); line[n-1] == '\n' {
		line = line[:n-1]
	}
	l.mu.Lock()
	if len(l.tail) == keptLines {
		l.tail = append(l.tail[:0], l.tail[1:]...)
	}
	l.tail = append(l.tail, line)
	heard := l.heard
	l.mu.Unlock()
	for _, hear := range heard {
		hear(line)
	}
}

// OnLog calls f with each line that the pod writes from now on, without its newline, in order and on one goroutine. A pod that
// runs already has none.
func (p *Pod) OnLog(f func(line string)) {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	p.log.heard = append(p.log.heard[:len(p.log.heard):len(p.log.heard)], f)
}

// LogTail gives the last n lines, at most 400.
func (p *Pod) LogTail(n int) []string {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	return append([]string(nil), p.log.tail[max(0, len(p.log.tail)-n):]...)
}
