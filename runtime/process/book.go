package process

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// book is the set of groups that somebody keeps from lines of the form "add 123 456 789" and "remove 123 456 789":
// pgid, start, sid, and the mark where there is one; with "add-stray" and "remove-stray" it is one process. The pipe to
// the guardian and the record file speak the same.
type book map[Group]struct{}

func addLine(g Group) string    { return line("add", g) }
func removeLine(g Group) string { return line("remove", g) }

func line(verb string, g Group) string {
	if g.Stray {
		verb += straySuffix
	}
	if g.Mark != ([32]byte{}) {
		return fmt.Sprintf("%s %d %d %d %x\n", verb, g.PGID, g.Start, g.SID, g.Mark)
	}
	return fmt.Sprintf("%s %d %d %d\n", verb, g.PGID, g.Start, g.SID)
}

const straySuffix = "-stray"

// apply takes one line; one that is none (torn at its end by a kill) changes nothing.
func (b book) apply(line string) bool {
	fields := strings.Fields(line)
	if len(fields) != 4 && len(fields) != 5 {
		return false
	}
	pgid, err1 := strconv.Atoi(fields[1])
	start, err2 := strconv.ParseUint(fields[2], 10, 64)
	sid, err3 := strconv.Atoi(fields[3])
	if err1 != nil || err2 != nil || err3 != nil || pgid <= 1 {
		return false
	}
	verb, stray := strings.CutSuffix(fields[0], straySuffix)
	g := Group{PGID: pgid, Start: start, SID: sid, Stray: stray}
	if len(fields) == 5 {
		mark, err := hex.DecodeString(fields[4])
		if err != nil || len(mark) != len(g.Mark) {
			return false
		}
		g.Mark = [32]byte(mark)
	}
	switch verb {
	case "add":
		b[g] = struct{}{}
	case "remove":
		delete(b, g)
	default:
		return false
	}
	return true
}

func (b book) groups() []Group {
	groups := make([]Group, 0, len(b))
	for g := range b {
		groups = append(groups, g)
	}
	return groups
}
