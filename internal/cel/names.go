package cel

import (
	"maps"
	"slices"
	"strings"
)

// FunctionNames returns the names of all functions and macros that expressions may call, sorted.
func FunctionNames() []string {
	names := []string{"all", "exists", "exists_one", "existsOne", "filter", "has", "map"}
	for name := range maps.Keys(base().Functions()) {
		if !strings.ContainsAny(name, "_@!-[]<>=+*/%&|? ") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
