package conform

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lxzan/gws"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// config is that of a run against a fake pod, which has no sessions: the survey of it gives up at once.
func config(target string) Config { return Config{Target: target, Patience: 10 * time.Second} }

// byName finds a row of a report.
func byName(t *testing.T, r *Report, name string) Result {
	t.Helper()
	for _, row := range r.Rows {
		if row.Name == name {
			return row
		}
	}
	t.Fatalf("there is no row %q", name)
	return Result{}
}

// Whatever goes wrong in a row is that row's, and the rows behind it are asked all the same.
func TestARowThatFailsHidesNoOther(t *testing.T) {
	target := startFake(t, func(c *gws.Conn, f jsonrpc.Frame) bool {
		switch f.Method {
		case "test/never":
			return true
		case "test/close":
			_ = c.WriteClose(4999, []byte("<b>gone\n"))
			return true
		case "test/reset":
			_ = c.NetConn().Close()
			return true
		case "test/nonsense":
			_ = c.WriteString("this is no JSON\x1b[31m")
			return true
		case "test/twice":
			for range 2 {
				_ = c.WriteString(string(jsonrpc.AppendResult(nil, f.ID, nil)))
			}
			return true
		case "test/binary":
			_ = c.WriteMessage(gws.OpcodeBinary, jsonrpc.AppendResult(nil, f.ID, nil))
			return true
		case "test/stranger":
			_ = c.WriteString(string(jsonrpc.AppendResult(nil, jsonrpc.StringID("nobody's"), nil)))
		}
		return false
	})
	asks := func(method string) func(*attempt) {
		return func(a *attempt) {
			p := a.greeted()
			p.answer(p.send(method, object{}))
			p.ping()
		}
	}
	cfg := config(target)
	cfg.Patience = 500 * time.Millisecond
	rows := []Row{
		{Section: "one", Name: "never", Expected: "an answer", check: asks("test/never")},
		{Section: "one", Name: "close", Expected: "an answer", check: asks("test/close")},
		{Section: "one", Name: "reset", Expected: "an answer", check: asks("test/reset")},
		{Section: "one", Name: "nonsense", Expected: "an answer", check: asks("test/nonsense")},
		{Section: "two", Name: "twice", Expected: "one answer", check: asks("test/twice")},
		{Section: "two", Name: "binary", Expected: "text", check: asks("test/binary")},
		{Section: "two", Name: "stranger", Expected: "an answer to an id of ours", check: asks("test/stranger")},
		{Section: "two", Name: "sound", Expected: "-32601", check: func(a *attempt) { a.greeted().ping(); a.note("-32601") }},
		{Section: "two", Name: "beside", Expected: "-32601", beside: true, check: func(a *attempt) { a.greeted().ping() }},
	}
	r, err := run(t.Context(), cfg, rows)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		status Status
		part   string
	}{
		"the pod can be entered": {Pass, "fake 1"}, "never": {Fail, "did not come within 500ms"}, "close": {Fail, "close 4999"}, "reset": {Fail, "ended before"},
		"nonsense": {Fail, `no JSON-RPC: "this is no JSON\x1b[31m"`}, "twice": {Fail, "nobody asked for"}, "binary": {Fail, "binary frame"}, "stranger": {Fail, "nobody asked for"},
		"sound": {Pass, "-32601"}, "beside": {Pass, ""},
	} {
		row := byName(t, r, name)
		if row.Status != want.status || !strings.Contains(row.Came+" "+row.Reason, want.part) {
			t.Errorf("%s: %+v", name, row)
		}
		if strings.ContainsAny(row.Came+row.Reason, "\n\x1b") {
			t.Errorf("%s shows what a peer wrote as it is: %q", name, row.Came+row.Reason)
		}
	}
	if r.Passed != 3 || r.Failed != 7 || r.OK() {
		t.Errorf("counted %d, %d", r.Passed, r.Failed)
	}
	for i, row := range r.Rows[1:] { // in the order of the table, also what ran beside
		if row.Name != rows[i].Name {
			t.Errorf("row %d is %q", i, row.Name)
		}
	}
}

// A run is over in its time, and what did not get its turn has failed.
func TestARunEndsInItsTime(t *testing.T) {
	target := startFake(t, func(_ *gws.Conn, f jsonrpc.Frame) bool { return f.Method == "test/never" })
	cfg := config(target)
	cfg.Patience, cfg.Timeout = time.Minute, 2*time.Second
	hangs := func(a *attempt) { p := a.greeted(); p.answer(p.send("test/never", object{})) }
	begun := time.Now()
	r, err := run(t.Context(), cfg, []Row{{Section: "s", Name: "hangs", check: hangs}, {Section: "s", Name: "has no turn", check: hangs}, {Section: "s", Name: "beside", beside: true, check: hangs}})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	if row := byName(t, r, "hangs"); row.Status != Fail || !strings.Contains(row.Reason, "before the run was over") {
		t.Errorf("%+v", row)
	}
	if row := byName(t, r, "has no turn"); row.Status != Fail || !strings.Contains(row.Reason, "--timeout") {
		t.Errorf("%+v", row)
	}
	if row := byName(t, r, "beside"); row.Status != Fail {
		t.Errorf("%+v", row)
	}
}

// A pod that asks for a key is no failed pod; one that refuses anything else is.
func TestWhoCannotComeInSaysWhy(t *testing.T) {
	status := http.StatusUnauthorized
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer server.Close()
	cfg := config("ws" + strings.TrimPrefix(server.URL, "http") + "/acp")
	if _, err := Run(t.Context(), cfg); !errors.Is(err, ErrKeyNeeded) {
		t.Errorf("a pod that asks for a key: %v", err)
	}
	cfg.Key = "a key"
	r, err := Run(t.Context(), cfg)
	if err != nil || r.Failed != 1 || r.Passed != 0 || r.Skipped != len(Rows()) || !strings.Contains(r.Rows[0].Reason, "does not take the key") {
		t.Errorf("a key that is not taken: %v %+v", err, r.Rows[0])
	}
	cfg.Key, status = "", http.StatusServiceUnavailable
	if r, err = Run(t.Context(), cfg); err != nil || r.Failed != 1 || r.Rows[0].Came != "HTTP 503" {
		t.Errorf("a pod that is full: %v %+v", err, r)
	}
}

// What a row needs decides alone whether it is skipped, and the reason names what is missing.
func TestWhatARowNeeds(t *testing.T) {
	none := &survey{names: []string{"a"}, agent: agentNone}
	for _, row := range []struct {
		survey *survey
		need   need
		why    string
	}{
		{none, 0, ""},
		{none, needKey, "no key"},
		{&survey{keyed: true}, needNoKey, "has a key"},
		{&survey{keyed: true}, needKey, ""},
		{none, needSecond, "--servers"},
		{&survey{names: []string{"a", "b"}}, needSecond, ""},
		{none, needCaller, ""},
		{none, needNone | needCaller, ""},
		{none, needTurns, "has no agent"},
		{none, needDemo, "has no agent"},
		{&survey{agent: agentNone, facadeOff: "the facade is off"}, needCaller, "the facade is off"},
		{&survey{agent: agentDemo}, needTurns | needDemo | needCaller, ""},
		{&survey{agent: agentDemo}, needNone, "has an agent"},
		{&survey{agent: agentDemo, facadeOff: "the facade is off"}, needCaller, "the facade is off"},
		{&survey{agent: agentOther}, needTurns, ""},
		{&survey{agent: agentOther}, needDemo, "greeting"},
		{&survey{agent: agentOther}, needCaller, "greeting"},
		{&survey{trouble: "it wants a login"}, needTurns, "it wants a login"},
		{&survey{trouble: "it wants a login"}, needCaller, "it wants a login"},
		{&survey{trouble: "it wants a login"}, 0, ""},
	} {
		if why := row.survey.lacks(row.need); (why == "") != (row.why == "") || !strings.Contains(why, row.why) {
			t.Errorf("%+v needs %b: %q, want %q", *row.survey, row.need, why, row.why)
		}
	}
}

// Each row has a name of its own, and says what it expects.
func TestRowsExplainThemselves(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range Rows() {
		if row.Section == "" || row.Expected == "" || row.check == nil || seen[row.Section+row.Name] {
			t.Errorf("%+v", row)
		}
		seen[row.Section+row.Name] = true
	}
	for _, section := range []string{sectionAuth, sectionCompliance, sectionEdges, sectionLifecycle, sectionTunnel} {
		n := 0
		for _, row := range Rows() {
			if row.Section == section {
				n++
			}
		}
		if n < 10 {
			t.Errorf("section %s has %d rows", section, n)
		}
	}
}

// The report says the same twice: for people and for programs.
func TestAReportInBothForms(t *testing.T) {
	r := &Report{Target: "ws://h/acp", Servers: []string{"a"}, Pod: Pod{Name: "acpod", Version: "1", Keyed: true, Agent: agentDemo}, Millis: 1500}
	r.Add(Result{Section: "s", Name: "good", Expected: "101", Came: "101", Status: Pass, Millis: 3})
	r.Add(Result{Section: "s", Name: "bad", Expected: "403", Came: "101", Status: Fail, Reason: "it was let in"})
	r.Add(Result{Section: "t", Name: "mute", Expected: "an answer", Status: Fail, Reason: "nothing came"})
	r.Add(Result{Section: "t", Name: "unasked", Expected: "401", Status: Skipped, Reason: "there is no key"})
	r.Assumed = []string{"the sky is blue"}
	var text, machine bytes.Buffer
	if r.Text(&text) != nil || r.JSON(&machine) != nil {
		t.Fatal("a report that cannot be written")
	}
	const want = `ws://h/acp: acpod 1, with a key, with the demo agent

s
  pass     good     101
  FAIL     bad
           expected: 403
           came:     101
           why:      it was let in

t
  FAIL     mute
           expected: an answer
           came:     nothing
           why:      nothing came
  skipped  unasked  there is no key

assumed: the sky is blue
1 passed, 2 failed, 1 skipped in 1.5 s
`
	if text.String() != want {
		t.Errorf("got\n%s", text.String())
	}
	var back map[string]any
	if err := json.Unmarshal(machine.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	rows, _ := back["rows"].([]any)
	first, _ := rows[0].(map[string]any)
	if len(rows) != 4 || back["passed"] != 1.0 || back["failed"] != 2.0 || back["skipped"] != 1.0 || first["section"] != "s" || first["expected"] != "101" || first["came"] != "101" || first["status"] != "pass" {
		t.Errorf("got %s", machine.String())
	}
	if strings.Count(machine.String(), "\n") != 1 {
		t.Error("it is not on one line")
	}
}
