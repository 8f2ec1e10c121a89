package agent

import (
	"strings"
	"testing"
	"time"
)

func TestAScriptSaysOneStepALine(t *testing.T) {
	for _, row := range []struct {
		text string
		want Script
		bad  string // part of the error; "" = it is good
	}{
		{text: "turn s1-t2\nchunks 5 100\n\n thoughts 2\n", want: Script{{Do: "turn", Text: "s1-t2"}, {Do: "chunks", N: 5, Bytes: 100}, {Do: "thoughts", N: 2}}},
		{text: `call katashiro.click {"a": [1]}`, want: Script{{Do: "call", Text: "katashiro.click", JSON: `{"a": [1]}`}}},
		{text: "call x\nsearch two words\nsearch\nask", want: Script{{Do: "call", Text: "x"}, {Do: "search", Text: "two words"}, {Do: "search"}, {Do: "ask"}}},
		{text: "sleep 1m30s\nend refusal\nfail -32000", want: Script{{Do: "sleep", For: 90 * time.Second}, {Do: "end", Text: "refusal"}, {Do: "fail", N: -32000}}},
		{text: "fault agentcrash:chunk:kill", want: Script{{Do: "fault", Strike: Strike{Crash, AtChunk, "kill"}}}},
		{text: "fault late:answer", want: Script{{Do: "fault", Strike: Strike{Late, AtAnswer, ""}}}},
		{text: "fill 3 4096", want: Script{{Do: "fill", N: 3, Bytes: 4096}}},
		{text: "fill all", bad: "number of chunks"},
		{text: "dance", bad: `line 1: "dance" is no step`},
		{text: "turn a b", bad: "is no key"},
		{text: "turn a\nturn ]", bad: "line 2"},
		{text: "chunks", bad: "a number"},
		{text: "chunks -1", bad: "number of chunks"},
		{text: "chunks 1 99999999999", bad: "size of a chunk"},
		{text: "call x {", bad: "arguments as JSON"},
		{text: "sleep -1s", bad: "out of range"},
		{text: "fault agentcrash:start", bad: "is for a plan"},
		{text: "fault agentcrash:answer", bad: "does not strike"},
		{text: "fault agentcrash:chunk:softly", bad: "no variation"},
		{text: "fault meteor:chunk", bad: "no fault"},
		{text: "fault agentcrash", bad: "no strike"},
		{text: "end endTurn", bad: "no stop reason"},
		{text: strings.Repeat("ask\n", maxScript+1), bad: "more than 4096 lines"},
	} {
		got, err := ParseScript(row.text)
		if row.bad != "" {
			if err == nil || !strings.Contains(err.Error(), row.bad) {
				t.Errorf("%.60q: %v, want an error with %q", row.text, err, row.bad)
			}
			continue
		}
		if err != nil || len(got) != len(row.want) {
			t.Errorf("%.60q: %v %v", row.text, got, err)
			continue
		}
		for i := range got {
			if got[i] != row.want[i] {
				t.Errorf("%.60q, step %d: %+v, want %+v", row.text, i, got[i], row.want[i])
			}
		}
	}
}

// Whatever is read can be written and read again, and nothing makes the parser panic.
func FuzzParseScript(f *testing.F) {
	f.Add("turn a\nchunks 3 10\ncall x {\"a\":1}\nsearch a b\nask\nsleep 1s\nfault agentcrash:line:kill\nend refusal\nfail 7\n")
	f.Add("chunks 1\r\n\t ask \n")
	f.Add("fault ::\ncall  \nsleep 1e400s")
	f.Fuzz(func(t *testing.T, text string) {
		script, err := ParseScript(text)
		if err != nil {
			return
		}
		again, err := ParseScript(script.String())
		if err != nil || again.String() != script.String() {
			t.Errorf("%q was written as %q and read as %q, %v", text, script, again, err)
		}
	})
}

func TestAPlanIsReadAsItIsWritten(t *testing.T) {
	p, err := ParsePlan("# of a test\nseed 9\nline 1000 # bytes\ndelay 50ms\nsecret CANARY\nagentcrash:new 0.25\nnever:initialize\n")
	if err != nil {
		t.Fatal(err)
	}
	want := "seed 9\nline 1000\ndelay 50ms\nsecret CANARY\nagentcrash:new 0.25\nnever:initialize 1\n"
	if p.String() != want {
		t.Errorf("it is written as %q", p)
	}
	if again, err := ParsePlan(p.String()); err != nil || again.String() != want {
		t.Errorf("and read as %q, %v", again, err)
	}
	for _, bad := range []string{"seed x", "line 0", "delay -1s", "agentcrash:new 2", "agentcrash:new NaN", "agentcrash:new 1 2", "meteor:new"} {
		if _, err := ParsePlan(bad); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// The table is what others choose from: each strike in it can be written down, and each that happens in a turn be scripted.
func TestEveryStrikeCanBeNamed(t *testing.T) {
	for _, s := range Every() {
		if again, err := ParseStrike(s.String()); err != nil || again != s {
			t.Errorf("%s is read as %s, %v", s, again, err)
		}
		_, err := ParseScript("fault " + s.String())
		if (err == nil) != s.InTurn() {
			t.Errorf("%s in a script: %v", s, err)
		}
	}
}
