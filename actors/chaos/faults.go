package chaos

import (
	"fmt"
	"strings"

	"github.com/acpod/acpod/actors/chaos/fault"
)

// CheckFaults says what is wrong with a list of faults, before anything is started.
func CheckFaults(list string) error {
	_, err := fault.Parse(list)
	return err
}

// Faults lists every fault for people: its name, its default rate and what is done.
func Faults() string {
	var b strings.Builder
	for _, f := range fault.Table() {
		fmt.Fprintf(&b, "  %-13s %-6v %s\n", f.Name, f.Rate, f.Does)
	}
	return b.String()
}
