package process

import (
	"fmt"
	"strconv"
	"strings"
)

// book is the set of groups that somebody keeps from lines of the form "add 123 456 789" and "remove 123 456 789":
// pgid, start, sid. The pipe to the guardian and the record file speak the same.
type book map[Group]struct{}

func addLine(g Group) string    { return fmt.Sprintf("add %d %d %d\n", g.PGID, g.Start, g.SID) }
func removeLine(g Group) string { return fmt.Sprintf("remove %d %d %d\n", g.PGID, g.Start, g.SID) }

// apply takes one line; one that is none (torn at its end by a kill) changes nothing.
func (b book) apply(line string) bool {
	fields := strings.Fields(line)
	if len(fields) != 4 {
		return false
	}
	pgid, err1 := strconv.Atoi(fields[1])
	start, err2 := strconv.ParseUint(fields[2], 10, 64)
	sid, err3 := strconv.Atoi(fields[3])
	if err1 != nil || err2 != nil || err3 != nil || pgid <= 1 {
		return false
	}
	g := Group{PGID: pgid, Start: start, SID: sid}
	switch fields[0] {
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
