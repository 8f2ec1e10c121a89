package conform

import (
	"fmt"
	"io"

	"github.com/acpod/acpod/actors/chaos/tally"
)

// A row's outcome and its line in the report, as client-check has them too.
type (
	Status = tally.Status
	Result = tally.Result
)

// The outcomes of a row.
const (
	Pass    = tally.Pass
	Fail    = tally.Fail
	Skipped = tally.Skipped
)

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
	tally.Sheet
}

// JSON writes the report as one object on one line.
func (r *Report) JSON(w io.Writer) error { return tally.JSON(w, r) }

// Text writes the report for people: a line a row, and what was expected and what came where a row failed.
func (r *Report) Text(w io.Writer) error {
	var assumed []string
	for _, one := range r.Assumed {
		assumed = append(assumed, "assumed: "+one)
	}
	return r.Sheet.Text(w, fmt.Sprintf("%s: %s", r.Target, r.Pod.describe()), assumed)
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
