// Package fault is the list of what the harness can do to a pod, by name, and the dice that decide when. A decision depends on the
// seed, on who decides and on the number of the decision, and on nothing else: two runs with one seed draw the same faults in the
// same places, however their goroutines are scheduled.
package fault
