package process

import (
	"errors"
	"os"
	"sync"
	"time"
)

// ErrStdinClosed says that stdin takes nothing any more: the child closed it, ended, or is being stopped.
var ErrStdinClosed = errors.New("the child's stdin is closed")

// errStdinSlow is the writer's verdict on a child that does not read.
var errStdinSlow = errors.New("it did not read its stdin")

// stdinChunk is written with one deadline: a child that reads slowly but reads is not stopped in a long piece.
const stdinChunk = 64 << 10

type piece struct {
	b    []byte
	done func()
}

// stdin is the queue in front of a child's stdin and the goroutine that writes it.
type stdin struct {
	f       *os.File
	limit   int64
	timeout time.Duration

	mu     sync.Mutex
	queue  []piece
	used   int64 // queued and in the writer's hand
	closed bool  // nothing is accepted any more
	broken bool  // nothing is written any more
	wake   chan struct{}
}

func newStdin(f *os.File, limit int64, timeout time.Duration) *stdin {
	return &stdin{f: f, limit: limit, timeout: timeout, wake: make(chan struct{}, 1)}
}

// send queues b, which belongs to the queue from then on. done (may be nil) runs once, when b was written or
// dropped; never when send fails.
func (s *stdin) send(b []byte, done func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrStdinClosed
	}
	if n := int64(len(b)); s.used > 0 && s.used+n > s.limit {
		return &StdinFull{Size: n, Used: s.used, Limit: s.limit}
	}
	s.used += int64(len(b))
	s.queue = append(s.queue, piece{b, done})
	s.poke()
	return nil
}

// finish accepts nothing more; what is queued is still written, then the pipe is closed.
func (s *stdin) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.poke()
}

// cut ends the writer now, in the middle of a piece if need be.
func (s *stdin) cut() {
	s.finish()
	s.mu.Lock()
	s.broken = true
	_ = s.f.SetWriteDeadline(time.Unix(1, 0)) // wakes a Write that waits
	s.mu.Unlock()
	s.drop()
}

func (s *stdin) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// write runs until finish or a failure; it closes the pipe. The error is nil, errStdinSlow, or why the child's side
// is closed.
func (s *stdin) write() error {
	defer func() { _ = s.f.Close() }()
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			if s.closed {
				s.mu.Unlock()
				return nil
			}
			s.mu.Unlock()
			<-s.wake
			continue
		}
		next := s.queue[0]
		s.queue[0] = piece{}
		if s.queue = s.queue[1:]; len(s.queue) == 0 {
			s.queue = nil // the array of a burst is not kept
		}
		s.mu.Unlock()

		err := s.writePiece(next.b)
		s.mu.Lock()
		s.used -= int64(len(next.b))
		s.mu.Unlock()
		if next.done != nil {
			next.done()
		}
		if err != nil {
			s.finish()
			s.drop()
			if errors.Is(err, os.ErrDeadlineExceeded) && !s.isBroken() {
				return errStdinSlow
			}
			return err
		}
	}
}

func (s *stdin) writePiece(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), stdinChunk)
		s.mu.Lock() // so that the deadline of cut is not overwritten
		if s.broken {
			s.mu.Unlock()
			return ErrStdinClosed
		}
		err := s.f.SetWriteDeadline(time.Now().Add(s.timeout))
		s.mu.Unlock()
		if err != nil {
			return err
		}
		if _, err := s.f.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func (s *stdin) isBroken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// drop forgets what is queued.
func (s *stdin) drop() {
	s.mu.Lock()
	queue := s.queue
	s.queue = nil
	for _, p := range queue {
		s.used -= int64(len(p.b))
	}
	s.mu.Unlock()
	for _, p := range queue {
		if p.done != nil {
			p.done()
		}
	}
}

// waiting tells what is queued.
func (s *stdin) waiting() (n int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue), s.used
}
