package mcpjson

import (
	"maps"
	"slices"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func hasKey[V any](m map[string]V, key string) bool {
	_, ok := m[key]
	return ok
}
