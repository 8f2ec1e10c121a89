package connection

import (
	"testing"
	"time"
)

func TestHeartbeat(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	const keepalive, pong = 20 * time.Second, 15 * time.Second
	for _, test := range []struct {
		name string
		p    pulse
		want beat
	}{
		{"busy both ways", pulse{data: ago(time.Second), heard: ago(2 * time.Second)}, beat{next: 18 * time.Second}},
		{"no data frame for a while: the worker must not sleep", pulse{data: ago(keepalive), heard: ago(time.Second)}, beat{keepalive: true, next: 19 * time.Second}},
		{"pings came in, they are no data", pulse{data: ago(21 * time.Second), heard: now}, beat{keepalive: true, next: keepalive}},
		{"nothing came in: a ping", pulse{data: ago(time.Second), heard: ago(keepalive)}, beat{ping: true, next: pong}},
		{"idle both ways", pulse{data: ago(keepalive), heard: ago(keepalive)}, beat{keepalive: true, ping: true, next: pong}},
		{"waiting for something after a ping", pulse{data: now, heard: ago(25 * time.Second), pinged: ago(5 * time.Second)}, beat{next: 10 * time.Second}},
		{"only one ping at a time", pulse{data: now, heard: ago(time.Minute), pinged: ago(14 * time.Second)}, beat{next: time.Second}},
		{"nothing after a ping", pulse{data: now, heard: ago(40 * time.Second), pinged: ago(pong)}, beat{dead: true, next: minBeat}},
		{"nothing after a ping, at its time", pulse{data: now, heard: ago(40 * time.Second), pinged: ago(pong), due: ago(10 * time.Millisecond)}, beat{dead: true, next: minBeat}},
		{"the pod stood still: the answer to its ping is not read yet", pulse{data: now, heard: ago(time.Hour), pinged: ago(time.Hour), due: ago(time.Hour - pong)}, beat{ping: true, next: pong}},
		{"it stood still after the answer", pulse{data: now, heard: ago(time.Hour - time.Second), pinged: ago(time.Hour), due: ago(time.Hour - pong)}, beat{answered: true, ping: true, next: pong}},
		{"it stood still for a moment", pulse{data: now, heard: ago(6 * time.Second), pinged: ago(5 * time.Second), due: ago(2 * time.Second)}, beat{next: 10 * time.Second}},
		{"anything after a ping is life", pulse{data: now, heard: ago(4 * time.Second), pinged: ago(5 * time.Second)}, beat{answered: true, next: 16 * time.Second}},
		{"alive after a ping, and quiet again", pulse{data: now, heard: ago(keepalive), pinged: ago(30 * time.Second)}, beat{answered: true, ping: true, next: pong}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.p.now = now
			if got := decide(test.p, keepalive, pong); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
