package tally

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

// Result is one row of a report.
type Result struct {
	Section  string `json:"section"`
	Name     string `json:"name"`
	Expected string `json:"expected"`
	Came     string `json:"came"` // "" when nothing came, or nothing was asked
	Status   Status `json:"status"`
	Reason   string `json:"reason,omitempty"` // why it failed or was skipped
	Millis   int64  `json:"ms"`
}

// Sheet is all rows of a run and what they come to.
type Sheet struct {
	Rows    []Result `json:"rows"`
	Passed  int      `json:"passed"`
	Failed  int      `json:"failed"`
	Skipped int      `json:"skipped"`
	Millis  int64    `json:"ms"`
}

// Add enters a row.
func (s *Sheet) Add(one Result) {
	s.Rows = append(s.Rows, one)
	switch one.Status {
	case Pass:
		s.Passed++
	case Fail:
		s.Failed++
	case Skipped:
		s.Skipped++
	}
}

// OK reports that no row failed.
func (s *Sheet) OK() bool { return s.Failed == 0 }

// Text writes the rows for people: a line a row, and what was expected and what came where a row failed. title stands before them,
// notes, a line each, behind.
func (s *Sheet) Text(w io.Writer, title string, notes []string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", title)
	width := 0
	for _, row := range s.Rows {
		width = max(width, len(row.Name))
	}
	section := ""
	for _, row := range s.Rows {
		if row.Section != section {
			section = row.Section
			fmt.Fprintf(&b, "\n%s\n", section)
		}
		switch row.Status {
		case Pass:
			b.WriteString(strings.TrimRight(fmt.Sprintf("  pass     %-*s  %s", width, row.Name, row.Came), " ") + "\n")
		case Skipped:
			fmt.Fprintf(&b, "  skipped  %-*s  %s\n", width, row.Name, row.Reason)
		case Fail:
			came := row.Came
			if came == "" {
				came = "nothing"
			}
			fmt.Fprintf(&b, "  FAIL     %s\n           expected: %s\n           came:     %s\n           why:      %s\n", row.Name, row.Expected, came, row.Reason)
		}
	}
	b.WriteString("\n")
	for _, one := range notes {
		fmt.Fprintf(&b, "%s\n", one)
	}
	fmt.Fprintf(&b, "%d passed, %d failed, %d skipped in %.1f s\n", s.Passed, s.Failed, s.Skipped, (time.Duration(s.Millis) * time.Millisecond).Seconds())
	_, err := io.WriteString(w, b.String())
	return err
}

// JSON writes a report, which holds a Sheet, as one object on one line.
func JSON(w io.Writer, report any) error {
	if err := json.MarshalWrite(w, report, json.FormatNilSliceAsNull(false)); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
