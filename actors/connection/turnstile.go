package connection

import "sync"

// turnstile counts the upgrades under way on the HTTP server's goroutines, so that a gateway that stops can wait for them: an
// HTTP server forgets a socket that was taken from it.
type turnstile struct {
	mu     sync.Mutex
	inside int
	shut   chan struct{} // not nil: nobody gets in any more; closed when nobody is inside
}

// enter reports whether the caller is inside; then it must leave.
func (t *turnstile) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shut != nil {
		return false
	}
	t.inside++
	return true
}

func (t *turnstile) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inside--
	t.settle()
}

// open lets in again: a new generation of the gateway runs.
func (t *turnstile) open() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shut = nil
}

// close lets nobody in any more and returns what is closed when the last has left.
func (t *turnstile) close() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shut == nil {
		t.shut = make(chan struct{})
		t.settle()
	}
	return t.shut
}

func (t *turnstile) settle() {
	if t.shut == nil || t.inside > 0 {
		return
	}
	select {
	case <-t.shut:
	default:
		close(t.shut)
	}
}
