package conform

import (
	"fmt"
)

// A Row is one rule and the way to find out whether it holds.
type Row struct {
	Section  string
	Name     string
	Expected string
	needs    need
	// beside runs the row beside all others, because it has to wait long.
	beside bool
	check  func(*attempt)
}

// need is what a row cannot do without.
type need uint

const (
	needKey    need = 1 << iota // a pod with a key
	needNoKey                   // a pod without one
	needSecond                  // a second granted name
	needCaller                  // somebody who makes tool calls: the demo agent, or the token of a pod without agents
	needTurns                   // an agent
	needDemo                    // the demo agent
	needNone                    // a pod without agents
)

// The sections, in the order of the report.
const (
	sectionAuth       = "auth"
	sectionCompliance = "compliance"
	sectionEdges      = "edges"
	sectionLifecycle  = "lifecycle"
	sectionTunnel     = "tunnel"
)

// Sections are the names of all sections, in the order of the report.
var Sections = []string{sectionAuth, sectionCompliance, sectionEdges, sectionLifecycle, sectionTunnel}

// Rows are all rows, section by section.
func Rows() []Row {
	var all []Row
	for _, section := range []struct {
		name string
		rows []Row
	}{
		{sectionAuth, authRows()}, {sectionCompliance, complianceRows()}, {sectionEdges, edgeRows()},
		{sectionLifecycle, lifecycleRows()}, {sectionTunnel, tunnelRows()},
	} {
		for _, row := range section.rows {
			row.Section = section.name
			all = append(all, row)
		}
	}
	return all
}

// lacks says what a row needs and this pod has not, or "".
func (s *survey) lacks(n need) string {
	switch {
	case n&needKey != 0 && !s.keyed:
		return "the pod asks for no key"
	case n&needNoKey != 0 && s.keyed:
		return "the pod has a key, so neither Host nor Origin is looked at"
	case n&needSecond != 0 && len(s.names) < 2:
		return "it takes a second granted name: --servers NAME,NAME"
	case n&needNone != 0 && s.agent != agentNone:
		return "the pod has an agent"
	case n&(needTurns|needDemo) != 0 && s.agent == agentNone:
		return "the pod has no agent"
	case n&needDemo != 0 && s.agent != agentDemo, n&needCaller != 0 && s.agent == agentOther:
		return "the agent is not the demo agent, and is sent nothing but a greeting"
	case n&(needTurns|needDemo|needCaller) != 0 && s.agent == "":
		return "it was not found out what agent the pod has: " + s.trouble
	case n&needCaller != 0 && s.facadeOff != "":
		return "nobody can make a tool call: " + s.facadeOff
	}
	return ""
}

// verdict is how a row ends before its last line. It is thrown, and caught by the run: a rule is read best without an error
// return after each step, and nothing is left open by it, because the attempt closes what it opened.
type verdict struct {
	status Status
	came   string
	reason string
}

// fail ends the row: came is what the pod did, the rest says what is wrong about it.
func (a *attempt) fail(came, format string, values ...any) {
	panic(verdict{Fail, came, fmt.Sprintf(format, values...)})
}

// skip ends the row without a judgement.
func (a *attempt) skip(format string, values ...any) {
	panic(verdict{Skipped, "", fmt.Sprintf(format, values...)})
}

// note says what came, for the report of a row that passes.
func (a *attempt) note(format string, values ...any) { a.came = fmt.Sprintf(format, values...) }
