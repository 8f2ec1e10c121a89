package inspect

import (
	"strings"
	"testing"
)

func TestTreeAsTextShowsWhatEachActorHolds(t *testing.T) {
	root := Root{
		Pod: map[string]int64{"bytes_used": 1536, "connections": 1},
		Node: Node{
			Path: "pod", Kind: "pod", Gen: 1, State: "running", Account: Account{Scope: "pod_bytes", Used: 1536, Limit: 1 << 30},
			Children: []Node{
				{Path: "pod/gateway", Kind: "gateway", State: "running", Account: Account{Scope: "pod_bytes"}, Children: []Node{{
					Path: "pod/gateway/conn-1", Kind: "connection", Gen: 7, State: "running", SinceMS: 61000, Account: Account{Scope: "connection_bytes", Used: 1536, Limit: 48 << 20},
					Queue: Queue{N: 2, Bytes: 256, OldestMS: 12}, Doing: &Doing{Type: "frame", ForMS: 3}, Owes: []Owed{{"mcp/disconnect", 5}, {"token", 6}},
					Refused: map[string]int64{"outbound_bytes": 4}, Restarts: 1, Attrs: map[string]any{"client": "x"},
				}}},
				{Path: "pod/facade", Kind: "facade", State: "stopping", Account: Account{Scope: "facade_bytes", Limit: 64 << 20}, Hidden: 3},
			},
		},
	}
	var b strings.Builder
	if err := WriteText(&b, root); err != nil {
		t.Fatal(err)
	}
	want := `bytes used 1.5KiB · connections 1

pod  pod gen 1 running 0s  1.5KiB of 1GiB
├─ gateway  gateway gen 0 running 0s
│  └─ conn-1  connection gen 7 running 1m1s  in frame for 3ms  queue 2, 256B, oldest 12ms  1.5KiB of 48MiB  owes mcp/disconnect (5ms), token (6ms)  refused 4 outbound_bytes  restarts 1  client=x
└─ facade  facade gen 0 stopping 0s  0B of 64MiB  (3 more)
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
