package document

import (
	"slices"
	"testing"
)

// TestMatchItems: equal items at the ends match, and as many in between.
func TestMatchItems(t *testing.T) {
	const none, unknown = NoItem, UnknownItem
	for name, c := range map[string]struct {
		items, other string
		want         []ItemMatch
	}{
		"empty":                     {`[]`, `[]`, nil},
		"equal":                     {`[1,2]`, `[1,2]`, []ItemMatch{0, 1}},
		"an item is changed":        {`[1,2,3]`, `[1,7,3]`, []ItemMatch{0, 1, 2}},
		"the first is changed":      {`[1,2]`, `[7,2]`, []ItemMatch{0, 1}},
		"the last is changed":       {`[1,2]`, `[1,7]`, []ItemMatch{0, 1}},
		"all are changed":           {`[1,2]`, `[7,8]`, []ItemMatch{0, 1}},
		"an item is added in front": {`[0,1,2]`, `[1,2]`, []ItemMatch{none, 0, 1}},
		"an item is added behind":   {`[1,2,3]`, `[1,2]`, []ItemMatch{0, 1, none}},
		"an item is added between":  {`[1,2,3]`, `[1,3]`, []ItemMatch{0, none, 1}},
		"an item is taken out":      {`[1,3]`, `[1,2,3]`, []ItemMatch{0, 2}},
		"all are added":             {`[1,2]`, `[]`, []ItemMatch{none, none}},
		"all are taken out":         {`[]`, `[1,2]`, nil},
		"one is changed, one added": {`[1,2,3,4]`, `[1,7,4]`, []ItemMatch{0, unknown, unknown, 2}},
		"one is changed, one gone":  {`[1,2,4]`, `[1,7,8,4]`, []ItemMatch{0, unknown, 3}},
		"a repeated item is added":  {`[1,1,1]`, `[1,1]`, []ItemMatch{0, 1, none}},
		"items are lists":           {`[[1],[2]]`, `[[2]]`, []ItemMatch{none, 0}},
	} {
		items, other := mustParse(t, c.items), mustParse(t, c.other)
		if got := MatchItems(Items(items.Root()), Items(other.Root())); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
