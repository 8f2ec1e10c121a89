package inspect

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
)

func TestAFlightIsRecordedOnlyWhenItWasAskedFor(t *testing.T) {
	off, err := StartFlight(0)
	if err != nil {
		t.Fatal(err)
	}
	for name, flight := range map[string]*Flight{"none": nil, "off": off} {
		_, _, h := house(t, Options{Flight: flight})
		if w := get(t, h, "/debug/flight"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "debug.flight_bytes") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		flight.Stop()
	}
}

func TestAFlightTellsTheLastSecondsAndNothingThatPassedThrough(t *testing.T) {
	flight, err := StartFlight(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer flight.Stop()
	_, ref, h := house(t, Options{Flight: flight, AuthKey: "hush"})
	if w := get(t, h, "/debug/flight"); w.Code != http.StatusUnauthorized {
		t.Errorf("without the key: %d", w.Code)
	}
	const canary = "canary-5f1c"
	_ = ref.Tell(canary)
	for range 2 {
		w := get(t, h, "/debug/flight", "Authorization", "Bearer hush")
		body := w.Body.Bytes()
		if w.Code != http.StatusOK || !bytes.HasPrefix(body, []byte("go 1.")) || !bytes.Contains(body, []byte("kernel")) {
			t.Fatalf("%d, %d bytes that begin with %q", w.Code, len(body), body[:min(len(body), 16)])
		}
		if bytes.Contains(body, []byte(canary)) || bytes.Contains(body, []byte("hush")) {
			t.Error("a recording tells what passed through")
		}
	}
	if _, err := StartFlight(1 << 20); err == nil {
		t.Error("two recorders in one process")
	}
}
