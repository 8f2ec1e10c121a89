package clientcheck

import (
	"time"

	"github.com/acpod/acpod/actors/chaos/tally"
)

// Defaults of a Config.
const (
	DefaultTimeout  = 2 * time.Minute
	DefaultStep     = 30 * time.Second
	DefaultPatience = 30 * time.Second // what a pod gives a connect and a handshake
)

// What a pod gives a client for other things, by default: acp.initialize_timeout, acp.pong_timeout, mcp.tunnel_timeout, and for a
// disconnect.
const (
	initializeTimeout = 60 * time.Second
	pongTimeout       = 20 * time.Second
	callTimeout       = 170 * time.Second
	disconnectTimeout = 5 * time.Second
)

// Config is what a run is told. Zero durations are the defaults.
type Config struct {
	Key       string        // that the client has to present; "" asks for none
	Tool      string        // the tool to be called; "" takes one that says readOnlyHint
	Arguments []byte        // one JSON object, its arguments; nil invents them from its schema
	Timeout   time.Duration // for the client to come at all
	Step      time.Duration // for each step of its own accord: initialize, session/new, coming back, a person's choice
	Patience  time.Duration // for each answer that it owes
	// Waiting, when set, is told what the run waits for that a person may have to do.
	Waiting func(what string)
	// Progress, when set, is told each row as it is judged.
	Progress func(row string, status tally.Status, why string)

	hold   time.Duration            // initialize is answered only then, to see whether the client waits
	quiet  time.Duration            // what must not come is waited for that long, beside what has to come
	outage time.Duration            // after the first close nobody is let in for that long
	large  int                      // bytes of the large message
	sooner map[string]time.Duration // by row: in place of Patience, where a test knows that nothing will come
}

// patience is how long what a row is about is waited for.
func (c *Config) patience(row string) time.Duration {
	if d, some := c.sooner[row]; some {
		return d
	}
	switch row {
	case rowInitialize:
		return max(c.Step, initializeTimeout)
	case rowPing:
		return min(c.Patience, pongTimeout)
	case rowDisconnect:
		return min(c.Patience, disconnectTimeout)
	case rowCall, rowWrong:
		if c.Patience == DefaultPatience {
			return callTimeout
		}
	}
	return c.Patience
}

func (c *Config) defaults() {
	for _, d := range []struct {
		value   *time.Duration
		usually time.Duration
	}{{&c.Timeout, DefaultTimeout}, {&c.Step, DefaultStep}, {&c.Patience, DefaultPatience}, {&c.hold, 200 * time.Millisecond}, {&c.quiet, 300 * time.Millisecond}, {&c.outage, 2 * time.Second}} {
		if *d.value <= 0 {
			*d.value = d.usually
		}
	}
	if c.large == 0 {
		c.large = 1 << 20
	}
}
