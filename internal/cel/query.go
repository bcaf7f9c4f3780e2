package cel

import (
	"net/url"
	"strings"
)

// query shows the parameters of a raw query as Headers. Names are compared decoded, as the next
// reader of the query would; what cannot be decoded stays as it is.
type query string

// Get implements Headers.
func (q query) Get(name string) (string, bool) {
	var first string
	var all []string // if there are several
	found := false
	for rest := string(q); rest != ""; {
		var k, v string
		switch k, v, rest = parameter(rest); {
		case k != name:
		case !found:
			first, found = v, true
		case all == nil:
			all = []string{first, v}
		default:
			all = append(all, v)
		}
	}
	if all != nil {
		return strings.Join(all, ", "), true
	}
	return first, found
}

// Each implements Headers.
func (q query) Each(f func(name, value string) bool) {
	values := map[string][]string{}
	var names []string
	for rest := string(q); rest != ""; {
		var k, v string
		if k, v, rest = parameter(rest); k == "" {
			continue
		}
		if values[k] == nil {
			names = append(names, k)
		}
		values[k] = append(values[k], v)
	}
	for _, k := range names {
		if !f(k, strings.Join(values[k], ", ")) {
			return
		}
	}
}

// parameter takes the first parameter off a query.
func parameter(q string) (name, value, rest string) {
	q, rest, _ = strings.Cut(q, "&")
	name, value, _ = strings.Cut(q, "=")
	return unescaped(name), unescaped(value), rest
}

func unescaped(s string) string {
	if strings.ContainsAny(s, "%+") {
		if decoded, err := url.QueryUnescape(s); err == nil {
			return decoded
		}
	}
	return s
}
