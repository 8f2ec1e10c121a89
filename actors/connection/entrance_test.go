package connection

import (
	"net/netip"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// hall is an entrance without sockets: its seats have actors that do nothing.
type hall struct {
	*entrance
	t    *testing.T
	root kernel.Ref
	now  time.Time
}

func openHall(t *testing.T, cfg Config) *hall {
	t.Helper()
	cfg = cfg.withDefaults()
	root, _ := kerneltest.Root(t, kerneltest.Start(t, kernel.Options{}))
	return &hall{entrance: newEntrance(&cfg), t: t, root: root, now: time.Unix(1000, 0)}
}

func (h *hall) come(address string) (*seat, kernel.Ref, string) {
	s, displaced, err := h.enter(netip.MustParseAddr(address), h.now)
	if err != nil {
		return nil, displaced, full(err)
	}
	h.actor(s, kerneltest.Spawn(h.t, h.root, kerneltest.NewProbe().Spec("conn-"+s.name)))
	return s, displaced, ""
}

// An address is one whether the listener speaks IPv4 or both.
func TestAnAddressIsOneHoweverItIsWritten(t *testing.T) {
	h := openHall(t, Config{Connections: 10, ConnectionsPerAddress: 1})
	s, _, _ := h.come("127.0.0.1")
	if _, _, full := h.come("::ffff:127.0.0.1"); full != "connections_per_address" {
		t.Errorf("the same address got in twice: %q", full)
	}
	other, _, full := h.come("::1")
	if full != "" {
		t.Errorf("another address is refused: %q", full)
	}
	h.leave(s)
	again, _, full := h.come("::ffff:127.0.0.1")
	if full != "" {
		t.Errorf("the seat is not free: %q", full)
	}
	if addressOf(netip.Addr{}) != "" {
		t.Error("a socket without an address has one")
	}
	h.leave(other)
	h.leave(again)
	h.atRest()
}

func (h *hall) atRest() {
	h.t.Helper()
	for _, c := range h.desk.Counts() {
		if c.Used != 0 || c.Admitted != c.Released {
			h.t.Errorf("at rest: %+v", c)
		}
	}
	if h.waiting.Len() != 0 {
		h.t.Errorf("%d still wait", h.waiting.Len())
	}
}

// Who goes for a newcomer: the one that has waited longest for its initialize, and only after it had its time.
func TestTheLongestSilentOneMakesRoom(t *testing.T) {
	for name, row := range map[string]struct {
		cfg       Config
		arrange   func(*hall, []*seat) // with three that came a second apart, the last one now
		from      string
		displaced int // which of the three, -1 none
		full      string
	}{
		"there is room":                        {Config{Handshakes: 4}, nil, "10.0.0.9", -1, ""},
		"the longest waiting":                  {Config{Handshakes: 3}, func(h *hall, _ []*seat) { h.now = h.now.Add(4 * time.Second) }, "10.0.0.9", 0, ""},
		"nobody has waited long enough":        {Config{Handshakes: 3}, func(h *hall, _ []*seat) { h.now = h.now.Add(2 * time.Second) }, "10.0.0.9", -1, "handshakes"},
		"the first has said initialize":        {Config{Handshakes: 2, Connections: 3}, func(h *hall, s []*seat) { h.now = h.now.Add(time.Minute) }, "10.0.0.9", 1, ""},
		"the first is just being let in":       {Config{Handshakes: 3}, func(h *hall, s []*seat) { h.actor(s[0], kernel.Ref{}); h.now = h.now.Add(time.Minute) }, "10.0.0.9", 1, ""},
		"sockets in all":                       {Config{Connections: 3}, func(h *hall, _ []*seat) { h.now = h.now.Add(time.Minute) }, "10.0.0.9", 0, ""},
		"of one address":                       {Config{ConnectionsPerAddress: 1}, func(h *hall, _ []*seat) { h.now = h.now.Add(time.Minute) }, "10.0.0.2", 1, ""},
		"of one address, whose speaks already": {Config{ConnectionsPerAddress: 1}, func(h *hall, s []*seat) { h.greeted(s[1]); h.now = h.now.Add(time.Minute) }, "10.0.0.2", -1, "connections_per_address"},
		"all speak already": {Config{Connections: 3}, func(h *hall, s []*seat) {
			for _, one := range s {
				h.greeted(one)
			}
			h.now = h.now.Add(time.Minute)
		}, "10.0.0.9", -1, "connections"},
	} {
		t.Run(name, func(t *testing.T) {
			h := openHall(t, row.cfg)
			var seats []*seat
			for i, from := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
				h.now = h.now.Add(time.Second)
				s, displaced, full := h.come(from)
				if full != "" || !displaced.IsZero() {
					t.Fatalf("the first three come in: %q %v", full, displaced)
				}
				if i == 0 && row.cfg.Handshakes == 2 {
					h.greeted(s)
				}
				seats = append(seats, s)
			}
			if row.arrange != nil {
				row.arrange(h, seats)
			}
			s, displaced, full := h.come(row.from)
			got := -1
			for i, one := range seats {
				if !displaced.IsZero() && one.ref == displaced {
					got = i
				}
			}
			if got != row.displaced || full != row.full {
				t.Fatalf("displaced %d, refused %q; want %d, %q", got, full, row.displaced, row.full)
			}
			if got >= 0 {
				h.greeted(seats[got]) // it came too late, and takes nothing from anybody
				if h.desk.Used(h.closing) != 1 {
					t.Error("who leaves is not counted")
				}
			}
			for _, one := range append(seats, s) {
				if one != nil {
					h.leave(one)
				}
			}
			h.atRest()
		})
	}
}

// Sockets on their way out are bounded as well: then the newcomer waits.
func TestTheWayOutIsNarrow(t *testing.T) {
	h := openHall(t, Config{Handshakes: 1})
	first, _, _ := h.come("10.0.0.1")
	var leaving []*seat
	for range maxClosing {
		s, err := h.enterToLeave(netip.MustParseAddr("10.0.0.2"))
		if err != nil {
			t.Fatal(err)
		}
		leaving = append(leaving, s)
	}
	if _, err := h.enterToLeave(netip.MustParseAddr("10.0.0.2")); full(err) != "closing" {
		t.Errorf("one more leaves: %v", err)
	}
	h.now = h.now.Add(time.Hour)
	if _, displaced, full := h.come("10.0.0.3"); full != "handshakes" || !displaced.IsZero() {
		t.Errorf("%v went although there is no way out: %q", displaced, full)
	}
	h.leave(leaving[0])
	second, displaced, full := h.come("10.0.0.3")
	if full != "" || displaced != first.ref {
		t.Errorf("%v went, refused %q", displaced, full)
	}
	for _, s := range append(leaving, first, second) {
		h.leave(s)
	}
	h.atRest()
}
