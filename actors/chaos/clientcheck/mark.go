package clientcheck

import (
	"fmt"
	"time"

	"github.com/acpod/acpod/actors/chaos/tally"
)

// mark is a judgement about one row.
type mark struct {
	row    string
	status tally.Status
	came   string // what the client did
	why    string // it failed or was skipped
}

func passed(row, came string, values ...any) mark {
	return mark{row, tally.Pass, fmt.Sprintf(came, values...), ""}
}

// failed takes what came as it is, and says why it is wrong.
func failed(row, came, why string, values ...any) mark {
	return mark{row, tally.Fail, came, fmt.Sprintf(why, values...)}
}

func skipped(row, why string, values ...any) mark {
	return mark{row, tally.Skipped, "", fmt.Sprintf(why, values...)}
}

// sheet has the judgement about each row: the first failure stays, a pass is worth more than a skip. The milliseconds of a row are those
// since the judgement before.
type sheet struct {
	marks  map[string]mark
	millis map[string]int64
	before time.Time  // the judgement before
	tell   func(mark) // nil, or told of each that changes something
}

func newSheet() *sheet {
	return &sheet{marks: map[string]mark{}, millis: map[string]int64{}, before: time.Now()}
}

func (s *sheet) put(marks ...mark) {
	for _, m := range marks {
		old, known := s.marks[m.row]
		if known && (old.status == tally.Fail || m.status == tally.Skipped || old.status == m.status) {
			continue
		}
		s.marks[m.row] = m
		now := time.Now()
		s.millis[m.row], s.before = now.Sub(s.before).Milliseconds(), now
		if s.tell != nil {
			s.tell(m)
		}
	}
}

func (s *sheet) is(row string, status tally.Status) bool {
	m, known := s.marks[row]
	return known && m.status == status
}

// report gives all rows. what is the reason of those that were not judged because of how the run ended; "" leaves each its own.
func (s *sheet) report(into *tally.Sheet, what string) {
	for _, r := range rows {
		one := tally.Result{Section: r.section, Name: r.name, Expected: r.expected, Status: tally.Skipped, Reason: r.unasked, Millis: s.millis[r.name]}
		if m, known := s.marks[r.name]; known {
			one.Status, one.Came, one.Reason = m.status, m.came, m.why
		} else if what != "" && r.section != sectionEnter {
			one.Reason = what
		}
		into.Add(one)
	}
}
