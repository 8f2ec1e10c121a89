package door

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// Panics is told of each panic of a handler: its value as text, at most 256 bytes of it, and its stack. It runs on the goroutine of
// the request and must not block. Its methods see to it that no panic of a server passes unseen: net/http would end the connection
// and write a line into its error log, where it stands among what peers did wrong.
type Panics func(value string, stack []byte)

// Guard answers 500 for a handler that panicked before it wrote anything; half an answer ends with its connection, as nothing else
// says that it is half. The panic of [http.ErrAbortHandler] is a handler's own way to end so, and none.
func (told Panics) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				told(cutValue(fmt.Sprint(p)), debug.Stack())
				lastAnswer(w)
			}
			panic(http.ErrAbortHandler)
		}()
		next.ServeHTTP(w, r)
	})
}

// lastAnswer is a whole answer without a body when none has begun, and changes nothing in one that has. A connection that the handler
// has taken from the server is the handler's alone: what would be flushed there goes among frames of another protocol.
func lastAnswer(w http.ResponseWriter) {
	clear(w.Header())
	w.Header().Set("Content-Length", "0")
	w.Header().Set("Connection", "close")
	w.WriteHeader(http.StatusInternalServerError)
	if _, err := w.Write(nil); err != nil {
		return
	}
	_ = http.NewResponseController(w).Flush()
}

// ErrorLog is for [http.Server.ErrorLog]: what peers do wrong goes to debug, and a panic outside of every handler is told.
func (told Panics) ErrorLog(to *slog.Logger) *log.Logger {
	return log.New(serverLines{told, to}, "", 0)
}

// serverLines takes what an http.Server writes, one message a call.
type serverLines struct {
	told Panics
	to   *slog.Logger
}

func (s serverLines) Write(message []byte) (int, error) {
	first, rest, _ := bytes.Cut(bytes.TrimSpace(message), []byte("\n"))
	if bytes.HasPrefix(first, []byte("http: panic serving ")) {
		s.told(cutValue(string(first)), bytes.Clone(rest))
	} else {
		s.to.Debug(string(bytes.TrimSpace(message)))
	}
	return len(message), nil
}

func cutValue(text string) string {
	const most = 256
	return text[:min(len(text), most)]
}
