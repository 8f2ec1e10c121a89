package process

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"

	"golang.org/x/time/rate"
)

const (
	stderrLine  = 1 << 10 // of a line, what is logged
	stderrKept  = 4 << 10 // of a line, what is looked at (a secret may straddle what is logged)
	stderrRate  = 100     // lines a second that are logged
	stderrBurst = 1000
)

// stderrLog keeps the end of what a child wrote to stderr and logs its lines.
type stderrLog struct {
	log     *slog.Logger
	secrets []string
	limit   *rate.Limiter

	ended   chan struct{} // closed when all of it was read
	line    []byte        // the unfinished line, at most stderrKept bytes
	skipped int           // bytes of it that were not kept
	quiet   int           // lines that were not logged

	mu    sync.Mutex // the owner reads the ring while the drain writes it
	ring  []byte
	size  int
	total int64
}

func newStderrLog(size int, log *slog.Logger, secrets []string) *stderrLog {
	return &stderrLog{log: log, secrets: secrets, limit: rate.NewLimiter(stderrRate, stderrBurst), size: size, ended: make(chan struct{})}
}

// drain reads until the stream ends. It never stops for a slow logger's sake any longer than one line takes: the
// rate limit comes before the logger.
func (s *stderrLog) drain(r io.Reader) {
	defer close(s.ended)
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		s.keep(buf[:n])
		s.split(buf[:n])
		if err != nil {
			if len(s.line) > 0 {
				s.emit()
			}
			if s.quiet > 0 && s.log != nil {
				s.log.Warn("stderr lines were not logged", "lines", s.quiet)
			}
			return
		}
	}
}

// keep appends to the ring and forgets what is older than its size.
func (s *stderrLog) keep(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total += int64(len(b))
	if len(b) >= s.size {
		s.ring = append(s.ring[:0], b[len(b)-s.size:]...)
		return
	}
	if over := len(s.ring) + len(b) - s.size; over > 0 {
		s.ring = append(s.ring[:0], s.ring[over:]...)
	}
	s.ring = append(s.ring, b...)
}

func (s *stderrLog) split(b []byte) {
	if s.log == nil {
		return
	}
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		part := b
		if end >= 0 {
			part = b[:end]
		}
		kept := part[:min(len(part), stderrKept-len(s.line))]
		s.line = append(s.line, kept...)
		s.skipped += len(part) - len(kept)
		if end < 0 {
			return
		}
		s.emit()
		b = b[end+1:]
	}
}

func (s *stderrLog) emit() {
	line, skipped := s.line, s.skipped
	s.line, s.skipped = s.line[:0], 0
	if !s.log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	if !s.limit.Allow() {
		s.quiet++
		return
	}
	attrs := []any{"line", Escape(mask(strings.TrimSuffix(string(line), "\r"), s.secrets), stderrLine)}
	if skipped > 0 {
		attrs = append(attrs, "skipped_bytes", skipped)
	}
	if s.quiet > 0 {
		attrs = append(attrs, "lines_not_logged", s.quiet)
		s.quiet = 0
	}
	s.log.Info("stderr", attrs...)
}

// tail returns the last lines that fit into max bytes, escaped, joined to one line.
func (s *stderrLog) tail(max int) string {
	s.mu.Lock()
	text := string(s.ring)
	cut := s.total > int64(len(s.ring))
	s.mu.Unlock()
	if cut { // what may have lost its beginning is not shown: it could be the rest of a secret
		if _, after, found := strings.Cut(text, "\n"); found {
			text = after
		}
	}
	lines := strings.Split(strings.TrimRight(mask(text, s.secrets), "\r\n"), "\n")
	out := ""
	for i := len(lines) - 1; i >= 0; i-- {
		line := Escape(strings.TrimRight(lines[i], "\r"), max)
		switch {
		case line == "":
		case out == "":
			out = line
		case len(line)+3+len(out) > max:
			return out
		default:
			out = line + " | " + out
		}
	}
	return out
}

// bytes returns a copy of the ring and how much was written in all.
func (s *stderrLog) bytes() ([]byte, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.ring), s.total
}
