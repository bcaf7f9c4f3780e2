package routing

import "reflect"

// Equal reports whether two tables say the same.
func Equal(a, b *Table) bool { return reflect.DeepEqual(a, b) }
