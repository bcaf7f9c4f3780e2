package cel

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

// FuzzQuery compares what expressions see of a query with net/url, if that can read it.
func FuzzQuery(f *testing.F) {
	for _, q := range []string{"", "limit=500", "a=1&b=2&a=3", "a+b=c%20d&%61=1", "&&=x&a", "a=b=c",
		"limit=5&%6cimit=7", "%zz=1&a=1"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, q string) {
		want, err := url.ParseQuery(q)
		if err != nil {
			return // what net/url cannot read is shown as it is
		}
		delete(want, "")
		var names []string
		query(q).Each(func(name, value string) bool {
			names = append(names, name)
			if joined := strings.Join(want[name], ", "); value != joined {
				t.Errorf("%q: each %q is %q, want %q", q, name, value, joined)
			}
			return true
		})
		for name, values := range want {
			got, found := query(q).Get(name)
			if joined := strings.Join(values, ", "); !found || got != joined {
				t.Errorf("%q: %q is %q, %t, want %q", q, name, got, found, joined)
			}
			if !slices.Contains(names, name) {
				t.Errorf("%q: %q is not among %q", q, name, names)
			}
		}
		if len(names) != len(want) {
			t.Errorf("%q: %q, want %d names", q, names, len(want))
		}
		if _, found := query(q).Get("no such parameter in it, as it is too long to be one"); found {
			t.Error("something is there that cannot be")
		}
	})
}
