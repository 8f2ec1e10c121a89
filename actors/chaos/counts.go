package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// counts shows a tally, the largest first.
func counts(of map[string]int64) string {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		if of[a] != of[b] {
			return int(of[b] - of[a])
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, of[name])
	}
	return strings.Join(names, ", ")
}
