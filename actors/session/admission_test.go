package session

import (
	"testing"
	"time"
)

func TestWhoIsSuspendedAtTheCap(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	for name, c := range map[string]struct {
		all  []candidate
		want string
	}{
		"nobody":                     {nil, ""},
		"all are busy":               {[]candidate{{id: "a", busy: true}, {id: "b", busy: true}}, ""},
		"the longest idle":           {[]candidate{{id: "a", idleSince: at(5)}, {id: "b", idleSince: at(3)}, {id: "c", idleSince: at(9)}}, "b"},
		"never one with a turn":      {[]candidate{{id: "a", idleSince: at(1), busy: true}, {id: "b", idleSince: at(9)}}, "b"},
		"one without a client first": {[]candidate{{id: "a", idleSince: at(1)}, {id: "b", idleSince: at(9), clientless: true}}, "b"},
		"the key with the most agents first": {[]candidate{{id: "a", key: "x", idleSince: at(1), clientless: true},
			{id: "b", key: "y", idleSince: at(8)}, {id: "c", key: "y", idleSince: at(9)}}, "b"},
		"busy agents count for their key": {[]candidate{{id: "a", key: "x", idleSince: at(1)},
			{id: "b", key: "y", idleSince: at(8), busy: true}, {id: "c", key: "y", idleSince: at(9)}}, "c"},
		"another key when that one is all busy": {[]candidate{{id: "a", key: "x", idleSince: at(1)},
			{id: "b", key: "y", busy: true}, {id: "c", key: "y", busy: true}}, "a"},
		"the id breaks ties": {[]candidate{{id: "b"}, {id: "a"}}, "a"},
	} {
		if got, ok := victim(c.all); got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, ok, c.want)
		}
	}
}

func TestWhoseASessionIs(t *testing.T) {
	mine, other := [32]byte{1}, [32]byte{2}
	for name, c := range map[string]struct {
		of     owner
		key    string
		secret [32]byte
		want   bool
	}{
		"the same client":                   {owner{"k", mine}, "k", mine, true},
		"another client of the same key":    {owner{"k", mine}, "k", other, false},
		"no secret where one was given":     {owner{"k", mine}, "k", [32]byte{}, false},
		"another key with the same secret":  {owner{"k", mine}, "l", mine, false},
		"no secret: any client of the key":  {owner{"k", [32]byte{}}, "k", other, true},
		"no secret: none of another key":    {owner{"k", [32]byte{}}, "", [32]byte{}, false},
		"keyless loopback is a key as well": {owner{"", [32]byte{}}, "", [32]byte{}, true},
	} {
		if got := c.of.admits(c.key, c.secret); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestWhatAResumeFinds(t *testing.T) {
	for name, c := range map[string]struct {
		of   claim
		want verdict
	}{
		"nobody owns it":                                    {claim{}, grant},
		"nobody owns it and a turn runs":                    {claim{turn: true}, grant},
		"this connection":                                   {claim{held: true, same: true}, grant},
		"this connection, in a turn":                        {claim{held: true, same: true, turn: true}, busy},
		"an older connection yields":                        {claim{held: true, rank: 2, other: 1}, grant},
		"an older connection yields in the midst of a turn": {claim{held: true, rank: 2, other: 1, turn: true}, grant},
		"a newer connection keeps it":                       {claim{held: true, rank: 1, other: 2}, superseded},
	} {
		if got := judge(c.of); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
