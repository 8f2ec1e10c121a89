package acp

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

func TestDeclarationsOfEveryForm(t *testing.T) {
	long := strings.Repeat("n", 65)
	for in, want := range map[string]string{
		`{"type":"acp","name":"a","id":"i"}`:                                      "connect id a i",
		`{"type":"acp","name":"a","serverId":"i"}`:                                "connect serverId a i",
		`{"type":"acp","name":"a","serverId":"s","id":"i"}`:                       "connect serverId a s",
		`{"t\u0079pe":"acp","name":"\u0061","id":"\u0069"}`:                       "connect id a i",
		`{"type":"http","name":"a","url":"acp:u","headers":[]}`:                   "connect acp url a acp:u",
		`{"type":"http","name":"a","url":"http://x","headers":[]}`:                "ignored http a ",
		`{"type":"http","name":"a","url":"ACP:u"}`:                                "ignored http a ",
		`{"type":"sse","name":"a","url":"acp:u"}`:                                 "ignored sse a ",
		`{"name":"a","command":"/bin/sh","args":[],"env":[]}`:                     "ignored stdio a ",
		`{"type":"stdio","name":"a","command":"/bin/sh"}`:                         "ignored stdio a ",
		`{"type":"acp","name":"a","id":"i","command":"/bin/sh","url":"http://x"}`: "connect id a i",
		`{"name":"a"}`: "ignored unknown a ",
		`{"transport":"acp","uuid":"u","name":"a"}`:          "ignored unknown a ",
		`{"type":7,"name":"a","id":"i"}`:                     "ignored unknown a ",
		`"acp"`:                                              "ignored unknown  ",
		`{"type":"acp","type":"http","name":"a"}`:            "ignored unknown  ",
		`{"type":"acp","name":"a","id":"i","i\u0064":"j"}`:   "ignored unknown  ",
		`{"type":"acp","name":"a.b","id":"i"}`:               "refused id a.b i",
		`{"type":"acp","name":"","id":"i"}`:                  "refused id  i",
		`{"type":"acp","name":"ä","id":"i"}`:                 "refused id ä i",
		`{"type":"acp","name":1,"id":"i"}`:                   "refused id  i",
		`{"type":"acp","id":"i"}`:                            "refused id  i",
		`{"type":"acp","name":"` + long + `","id":"i"}`:      "refused id " + long[:64] + " i",
		`{"type":"acp","name":"a"}`:                          "refused id a ",
		`{"type":"acp","name":"a","id":""}`:                  "refused id a ",
		`{"type":"acp","name":"a","id":5}`:                   "refused id a ",
		`{"type":"acp","name":"a","serverId":null,"id":"i"}`: "refused serverId a ",
		`{"type":"http","name":"a","url":"acp:"}`:            "refused acp url a acp:",
	} {
		list, err := ParseServers([]byte("[" + in + "]"))
		if err != nil || len(list) != 1 {
			t.Errorf("%s: %v", in, err)
			continue
		}
		d := list[0]
		if got := fmt.Sprintf("%s %s %s %s", d.Verdict, d.Form, d.Name, d.ID); got != want {
			t.Errorf("%s is %q, not %q", in, got, want)
		}
		if (d.Reason == "") != (d.Verdict == Connect) || strings.Contains(d.Reason, "\n") {
			t.Errorf("%s: reason %q", in, d.Reason)
		}
		if (CodecFor(d) == nil) == d.Form.Tunnels() {
			t.Errorf("%s has the codec %v", in, CodecFor(d))
		}
	}
}

func TestAnIDMayHave1024Bytes(t *testing.T) {
	for n, want := range map[int]Verdict{1: Connect, MaxServerID: Connect, MaxServerID + 1: Refused} {
		list, err := ParseServers([]byte(`[{"type":"acp","name":"a","id":"` + strings.Repeat("x", n) + `"}]`))
		if err != nil || list[0].Verdict != want {
			t.Errorf("%d bytes: %v, %v", n, list, err)
		}
		if want == Refused && len(list[0].ID) > 64 {
			t.Errorf("%d bytes of a refused id are kept", len(list[0].ID))
		}
	}
}

func TestTheFirstOfEqualIDsAndTheLastOfEqualNames(t *testing.T) {
	list, err := ParseServers([]byte(`[
		{"type":"acp","name":"a","id":"1"},
		{"type":"acp","name":"b","id":"1"},
		{"type":"acp","name":"a","serverId":"2"},
		{"type":"acp","name":"c","id":"3"},
		{"type":"http","name":"a","url":"acp:4"},
		{"type":"acp","name":"!","id":"5"},
		{"type":"acp","name":"d","id":"5"},
		{"name":"d","command":"x"},
		{"type":"acp","name":"c","id":"1"}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Verdict{Superseded, Repeated, Superseded, Connect, Connect, Refused, Connect, Ignored, Repeated}
	for n, d := range list {
		if d.Verdict != want[n] || d.Index != n {
			t.Errorf("entry %d: %+v, want %s", n, d, want[n])
		}
	}
	if n := CountServers(list); n != 6 {
		t.Errorf("%d count against the limit", n)
	}
	if bad := CheckServers(list, 6); bad != nil {
		t.Errorf("six of six: %v", bad)
	}
	bad := CheckServers(list, 5)
	if bad == nil || !strings.Contains(string(bad.AppendObject(nil)), `"data":{"scope":"servers_per_session","limit":5,"used":6}`) {
		t.Errorf("six of five: %v", bad)
	}
}

func TestTheArrayItself(t *testing.T) {
	var bad *jsonrpc.Error
	for _, raw := range []string{"", "null", "{}", "[", "[" + strings.TrimSuffix(strings.Repeat("1,", MaxDeclared+1), ",") + "]"} {
		if _, err := ParseServers([]byte(raw)); !errors.As(err, &bad) || bad.Code != jsonrpc.InvalidParams {
			t.Errorf("%.20s: %v", raw, err)
		}
	}
	if list, err := ParseServers([]byte(" [ ] ")); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestEarlyToolsAreTakenToTheByte(t *testing.T) {
	for meta, want := range map[string]string{
		`{"acpod.dev/tools":[ {"name":"\u003c"} ]}`: `[ {"name":"\u003c"} ]`, `{"acpod.dev/tools":{}}`: "", `7`: "", `{}`: "", `{"acpod.dev/tools":[1],"acpod.dev\/tools":[2]}`: "",
	} {
		list, err := ParseServers([]byte(`[{"type":"acp","name":"a","id":"1","_meta":` + meta + `}]`))
		if err != nil || list[0].Verdict != Connect || string(list[0].Tools) != want {
			t.Errorf("%s gave %s, %v", meta, list[0].Tools, err)
		}
	}
}
