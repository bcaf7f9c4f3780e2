package document

// Items returns the items of a list.
func Items(list Node) []Node {
	items := make([]Node, 0, list.Len())
	for item := list.First(); item.Valid(); item = item.Next() {
		items = append(items, item)
	}
	return items
}

// An ItemMatch says where an item of a list is in another version of the list.
type ItemMatch int

// The matches that are no position.
const (
	// NoItem: the other list has nothing in its place.
	NoItem ItemMatch = -1
	// UnknownItem: some of the other list's items are in its place, and which one it has become is not known.
	UnknownItem ItemMatch = -2
)

// MatchItems returns, for each item of a list, its position in another version of the list. Equal items at both ends
// match, and those in between if there are equally many in both.
func MatchItems(items, other []Node) []ItemMatch {
	matches := make([]ItemMatch, len(items))
	start, end, otherEnd := 0, len(items), len(other)
	for start < end && start < otherEnd && EqualNodes(items[start], other[start]) {
		matches[start] = ItemMatch(start)
		start++
	}
	for start < end && start < otherEnd && EqualNodes(items[end-1], other[otherEnd-1]) {
		end, otherEnd = end-1, otherEnd-1
		matches[end] = ItemMatch(otherEnd)
	}
	for i := start; i < end; i++ {
		switch {
		case start == otherEnd:
			matches[i] = NoItem
		case end == otherEnd:
			matches[i] = ItemMatch(i)
		default:
			matches[i] = UnknownItem
		}
	}
	return matches
}
