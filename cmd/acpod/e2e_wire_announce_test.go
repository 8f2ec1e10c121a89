package main

import (
	"encoding/binary"
	"strings"
	"testing"
)

// Clients that are in and announce 8 MiB each are charged for it by the header alone, as many as there is room for; the others
// wait, and one more client works all the while.
func TestWhatClientsAnnounceIsChargedByTheHeader(t *testing.T) {
	t.Parallel()
	const announced = 8 << 20
	p := startPod(t, with(baseConfig, "limits.pod_bytes", `"128MiB"`))
	for range 100 {
		conn, response := rawSocket(t, p, "", maskedFrame(initialize)...)
		if response.StatusCode != 101 {
			t.Fatalf("upgrade: %d", response.StatusCode)
		}
		if _, payload := readFrame(t, conn); !strings.Contains(string(payload), `"acpod"`) {
			t.Fatalf("answered %s", payload)
		}
		frame := binary.BigEndian.AppendUint64([]byte{0x81, 0x80 | 127}, announced)
		if _, err := conn.Write(append(frame, 1, 2, 3, 4)); err != nil {
			t.Fatal(err)
		}
		if figures := p.tree().Pod; figures.BytesUsed > figures.BytesLimit {
			t.Fatalf("%d bytes of %d are used", figures.BytesUsed, figures.BytesLimit)
		}
	}
	p.await("the charge for what was announced", func() bool { return p.tree().Pod.BytesUsed >= 4*announced })
	late := dial(t, p)
	late.says(late.open(), "room for one", "echo: room for one\n")
}
