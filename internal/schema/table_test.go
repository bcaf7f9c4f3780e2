package schema

import (
	"fmt"
	"testing"
)

func TestTable(t *testing.T) {
	for _, size := range []int{0, 1, 2, 7, 64, 1000} {
		var properties []Property
		for i := range size {
			properties = append(properties, Property{Name: fmt.Sprintf("name%04d", i)})
		}
		table := newTable(properties)
		for i := range properties {
			if got := table.find(properties, properties[i].Name); got != i {
				t.Errorf("%d properties, %s: got %d, want %d", size, properties[i].Name, got, i)
			}
		}
		for _, name := range []string{"", "n", "name", "name000", "name00000", "Name0000", "zzzzzzzz", "nameXXXX"} {
			if got := table.find(properties, name); got != -1 {
				t.Errorf("%d properties, %q: got %d, want none", size, name, got)
			}
		}
	}
}

func TestTableVariants(t *testing.T) {
	properties := []Property{{Name: "Straße"}, {Name: "kind"}, {Name: "Kind2"}, {Name: "status"}}
	table := newTable(properties)
	for _, c := range []struct {
		name string
		want int
	}{
		{"Kind", 1}, {"KIND", 1}, {"\u212aind", 1}, {"kind", 1}, {"STATUS", 3}, {"\u017ftatus", 3}, {"statu\u017f", 3}, {"kind2", 2},
		{"stra\u1e9ee", 0}, {"strasse", -1}, {"kin", -1}, {"", -1}, {"kindd", -1}, {"k\u0131nd", -1},
	} {
		if got := table.variant(properties, c.name); got != c.want {
			t.Errorf("%q: got %d, want %d", c.name, got, c.want)
		}
	}
}
