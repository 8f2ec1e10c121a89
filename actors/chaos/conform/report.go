package conform

import (
	"encoding/json/v2"
	"fmt"
	"io"
	"strings"
	"time"
)

// Status is what became of a row.
type Status string

// The outcomes of a row.
const (
	Pass    Status = "pass"
	Fail    Status = "fail"
	Skipped Status = "skipped"
)

// Result is one row of the report. What a peer wrote stands in it quoted and cut, on one line.
type Result struct {
	Section  string `json:"section"`
	Name     string `json:"name"`
	Expected string `json:"expected"`
	Came     string `json:"came"` // "" when nothing came, or nothing was asked
	Status   Status `json:"status"`
	Reason   string `json:"reason,omitempty"` // why it failed or was skipped
	Millis   int64  `json:"ms"`
}

// Pod is what the survey found out.
type Pod struct {
	Name    string `json:"name"` // of agentInfo
	Version string `json:"version"`
	Keyed   bool   `json:"keyed"`
	// Agent is demo, none, another, or "" when it was not found out.
	Agent string `json:"agent"`
	// RequestBytes and FrameBytes are the limits that the rows went by.
	RequestBytes int `json:"request_bytes"`
	FrameBytes   int `json:"frame_bytes"`
}

// Report is a whole run.
type Report struct {
	Target  string   `json:"target"`
	Servers []string `json:"servers"` // declared
	Pod     Pod      `json:"pod"`
	Assumed []string `json:"assumed"` // what could not be learned
	Rows    []Result `json:"rows"`
	Passed  int      `json:"passed"`
	Failed  int      `json:"failed"`
	Skipped int      `json:"skipped"`
	Millis  int64    `json:"ms"`
}

func (r *Report) add(one Result) {
	r.Rows = append(r.Rows, one)
	switch one.Status {
	case Pass:
		r.Passed++
	case Fail:
		r.Failed++
	case Skipped:
		r.Skipped++
	}
}

// OK reports that no row failed.
func (r *Report) OK() bool { return r.Failed == 0 }

// JSON writes the report as one object on one line.
func (r *Report) JSON(w io.Writer) error {
	if err := json.MarshalWrite(w, r, json.FormatNilSliceAsNull(false)); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// Text writes the report for people: a line a row, and what was expected and what came where a row failed.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", r.Target, r.Pod.describe())
	width := 0
	for _, row := range r.Rows {
		width = max(width, len(row.Name))
	}
	section := ""
	for _, row := range r.Rows {
		if row.Section != section {
			section = row.Section
			fmt.Fprintf(&b, "\n%s\n", section)
		}
		switch row.Status {
		case Pass:
			fmt.Fprintf(&b, "  pass     %-*s  %s\n", width, row.Name, row.Came)
		case Skipped:
			fmt.Fprintf(&b, "  skipped  %-*s  %s\n", width, row.Name, row.Reason)
		case Fail:
			fmt.Fprintf(&b, "  FAIL     %s\n           expected: %s\n           came:     %s\n           why:      %s\n", row.Name, row.Expected, orNothing(row.Came), row.Reason)
		}
	}
	b.WriteString("\n")
	for _, one := range r.Assumed {
		fmt.Fprintf(&b, "assumed: %s\n", one)
	}
	fmt.Fprintf(&b, "%d passed, %d failed, %d skipped in %.1f s\n", r.Passed, r.Failed, r.Skipped, (time.Duration(r.Millis) * time.Millisecond).Seconds())
	_, err := io.WriteString(w, b.String())
	return err
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

// describe is the pod in half a line.
func (p Pod) describe() string {
	if p.Name == "" {
		return "a pod that could not be entered"
	}
	text := p.Name
	if p.Version != "" {
		text += " " + p.Version
	}
	if p.Keyed {
		text += ", with a key"
	} else {
		text += ", without a key"
	}
	switch p.Agent {
	case agentDemo:
		return text + ", with the demo agent"
	case agentNone:
		return text + ", without an agent"
	case agentOther:
		return text + ", with an agent that is sent nothing but a greeting"
	}
	return text + ", with an agent that did not answer"
}
