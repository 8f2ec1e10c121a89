package facade

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// takesStream reports whether the client reads server-sent events.
func takesStream(h http.Header) bool {
	for _, line := range h["Accept"] {
		for part := range strings.SplitSeq(line, ",") {
			kind, _, _ := strings.Cut(part, ";")
			if strings.EqualFold(strings.TrimSpace(kind), "text/event-stream") {
				return true
			}
		}
	}
	return false
}

// startStream turns the response into a stream of events.
func startStream(p *pacedWriter) error {
	h := p.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	p.arm()
	p.w.WriteHeader(http.StatusOK)
	return p.flush()
}

// sendEvent writes one JSON-RPC message as an event. A payload may have line breaks between its tokens; each of its
// lines becomes a data line, which the reader joins again.
func sendEvent(p *pacedWriter, a answer) error {
	lines := &dataLines{w: p}
	if _, err := p.Write([]byte("event: message\ndata: ")); err != nil {
		return err
	}
	if err := a.writeTo(lines); err != nil {
		return err
	}
	if _, err := p.Write([]byte("\n\n")); err != nil {
		return err
	}
	return p.flush()
}

// dataLines repeats the field name after each line break.
type dataLines struct{ w io.Writer }

// Write implements io.Writer.
func (d *dataLines) Write(b []byte) (int, error) {
	written := 0
	for len(b) > 0 {
		end := lineBreak(b)
		if end == len(b) {
			n, err := d.w.Write(b)
			return written + n, err
		}
		if _, err := d.w.Write(b[:end]); err != nil {
			return written, err
		}
		if _, err := d.w.Write([]byte("\ndata: ")); err != nil {
			return written, err
		}
		written, b = written+end+1, b[end+1:]
	}
	return written, nil
}

// lineBreak is where the first line break of b is, or its length.
func lineBreak(b []byte) int {
	if end := bytes.IndexAny(b, "\r\n"); end >= 0 {
		return end
	}
	return len(b)
}

// progressNote is a notifications/progress with the token that this client gave, and the rest of params as the provider
// wrote it.
func progressNote(params, token []byte) (answer, bool) {
	object, err := jsonrpc.ParseObject(params)
	if err != nil {
		return answer{}, false
	}
	return answer{payload: jsonrpc.AppendNotification(nil, "notifications/progress", object.Set("progressToken", token))}, true
}
