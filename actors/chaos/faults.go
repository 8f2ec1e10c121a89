package chaos

import "github.com/acpod/acpod/actors/chaos/fault"

// CheckFaults says what is wrong with a list of faults, before anything is started.
func CheckFaults(list string) error {
	_, err := fault.Parse(list)
	return err
}
