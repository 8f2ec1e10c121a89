package inspect

import (
	"errors"
	"io"
	"net/http"
	"runtime/trace"
	"time"
)

// Flight is the runtime's own recorder of the last seconds: which goroutine ran, waited or was woken, when, and where in the code. A
// recording has names of functions and times, and nothing that went through them: no payload, no argument, no attribute.
// Only one may run in a process. The zero value is off.
type Flight struct{ recorder *trace.FlightRecorder }

// flightAge is how far back a recording goes when it fits: long enough to hold what led to a stall of a few seconds.
const flightAge = 20 * time.Second

// A recorder holds its window, and a slow reader may still have the one before: [FlightWindows] times its size. A window ends with a whole
// generation of the trace, and another is being written: of a busy process, [FlightGenerations] bytes.
const (
	FlightWindows     = 2
	FlightGenerations = 32 << 20
)

// StartFlight begins to record into a window of about size bytes. 0 is off.
func StartFlight(size int64) (*Flight, error) {
	if size <= 0 {
		return &Flight{}, nil
	}
	r := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: flightAge, MaxBytes: uint64(size)})
	if err := r.Start(); err != nil {
		return nil, err
	}
	return &Flight{r}, nil
}

// Stop ends the recording and gives its memory back.
func (f *Flight) Stop() {
	if f.on() {
		f.recorder.Stop()
	}
}

func (f *Flight) on() bool { return f != nil && f.recorder != nil }

// errFlightOff says why there is no recording, and how to have one.
var errFlightOff = errors.New("there is no flight recording: debug.flight_bytes is 0; set it to a size, 16MiB say, and start the pod again")

// serveFlight gives the window as `go tool trace` reads it.
func (i *Inspector) serveFlight(w http.ResponseWriter, _ *http.Request) {
	if !i.opts.Flight.on() {
		fail(w, http.StatusNotFound, errFlightOff.Error())
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="acpod.trace"`)
	sent := &started{w: w}
	if _, err := i.opts.Flight.recorder.WriteTo(sent); err != nil && !sent.any {
		w.Header().Del("Content-Disposition")
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusServiceUnavailable, "the recording is being read by another request: "+err.Error())
	}
}

// started knows whether anything was written.
type started struct {
	w   io.Writer
	any bool
}

func (s *started) Write(b []byte) (int, error) {
	s.any = true
	return s.w.Write(b)
}
