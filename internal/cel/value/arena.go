package value

import "github.com/google/cel-go/common/types"

// An Arena is the memory that values of one request are made in, and what they may use.
type Arena struct {
	Allowance
	objects Slab[Map]
	lists   Slab[List]
	members Slab[memberIterator]
	items   Slab[itemIterator]
	records Slab[Record]
	strings Slab[types.String]
	ints    Slab[types.Int]
	doubles Slab[types.Double]
}

// ArenaMarks are the places in all slabs of an arena.
type ArenaMarks struct {
	objects, lists, members, items, records, strings, ints, doubles Mark
	made                                                            int
}

func (f *Arena) Marks() ArenaMarks {
	return ArenaMarks{
		f.objects.Mark(), f.lists.Mark(), f.members.Mark(), f.items.Mark(), f.records.Mark(),
		f.strings.Mark(), f.ints.Mark(), f.doubles.Mark(), f.made,
	}
}

// GiveBack gives back what was made since then; nothing may use it any more.
func (f *Arena) GiveBack(p ArenaMarks) {
	f.objects.Reset(p.objects)
	f.lists.Reset(p.lists)
	f.members.Reset(p.members)
	f.items.Reset(p.items)
	f.records.Reset(p.records)
	f.strings.Reset(p.strings)
	f.ints.Reset(p.ints)
	f.doubles.Reset(p.doubles)
	f.made = p.made
}
