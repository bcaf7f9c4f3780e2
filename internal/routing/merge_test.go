package routing

import (
	"reflect"
	"testing"
)

// TestMerge: the indexes of the second table are those of the whole.
func TestMerge(t *testing.T) {
	one := func(name string) *Table {
		return &Table{
			Listeners: []Listener{{Section: name}},
			Routes: []Route{{
				Name: name, Attachments: []Attachment{{Listener: 0}},
				Filters:  []Filter{{Mirror: &Mirror{Backend: 0}}, {Unknown: "x"}},
				Backends: []WeightedBackend{{Backend: 0, Filters: []Filter{{Mirror: &Mirror{Backend: 0}}}}},
			}},
			Backends: []Backend{{Name: name}},
		}
	}
	a, b := one("a"), one("b")
	got := Merge(a, b)
	moved := one("b").Routes[0]
	moved.Attachments[0].Listener, moved.Backends[0].Backend = 1, 1
	moved.Filters[0].Mirror.Backend, moved.Backends[0].Filters[0].Mirror.Backend = 1, 1
	want := &Table{Listeners: []Listener{{Section: "a"}, {Section: "b"}}, Routes: []Route{one("a").Routes[0], moved},
		Backends: []Backend{{Name: "a"}, {Name: "b"}}}
	if !Equal(got, want) {
		t.Errorf("Merge is\n%+v\nnot\n%+v", got, want)
	}
	if !reflect.DeepEqual(a, one("a")) || !reflect.DeepEqual(b, one("b")) {
		t.Error("a table has changed")
	}
	if Merge(a, nil) != a || Merge(nil, b) != b || Merge(nil, nil) != nil {
		t.Error("without one of them it is not the other")
	}
}
