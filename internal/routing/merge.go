package routing

import "slices"

// Merge returns a table with the listeners, routes and backends of both, of which each may be nil. If both have routes
// that are equal matches, those of the first count.
func Merge(a, b *Table) *Table {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	t := &Table{
		Listeners: slices.Concat(a.Listeners, b.Listeners), Routes: slices.Concat(a.Routes, b.Routes),
		Backends: slices.Concat(a.Backends, b.Backends),
	}
	for i := len(a.Routes); i < len(t.Routes); i++ {
		t.Routes[i] = t.Routes[i].moved(len(a.Listeners), len(a.Backends))
	}
	return t
}

// moved returns the route for a table that has so many listeners and backends before those of its own.
func (r Route) moved(listeners, backends int) Route {
	r.Attachments = slices.Clone(r.Attachments)
	for i := range r.Attachments {
		r.Attachments[i].Listener += listeners
	}
	r.Filters = movedFilters(r.Filters, backends)
	r.Backends = slices.Clone(r.Backends)
	for i := range r.Backends {
		b := &r.Backends[i]
		b.Backend += backends
		b.Filters = movedFilters(b.Filters, backends)
	}
	return r
}

func movedFilters(all []Filter, backends int) []Filter {
	all = slices.Clone(all)
	for i := range all {
		if all[i].Mirror != nil {
			m := *all[i].Mirror
			m.Backend += backends
			all[i].Mirror = &m
		}
	}
	return all
}
