package listeners

import (
	"bytes"
	"maps"
	"strings"
)

// hosts find the listener of a host: by its name, else by the longest end of names, else the one of any host.
type hosts struct {
	exact map[string]*Listener
	below map[string]*Listener // by what follows "*."
	any   *Listener
}

// add adds a listener by one of its hosts; "" is any. The first one counts, which is returned if it is another.
func (h *hosts) add(name string, l *Listener) (before *Listener) {
	if name == "" {
		if h.any == nil {
			h.any = l
		}
		return other(h.any, l)
	}
	all := &h.exact
	if end, isWildcard := strings.CutPrefix(name, "*."); isWildcard {
		name, all = end, &h.below
	}
	if *all == nil {
		*all = map[string]*Listener{}
	}
	name = strings.Trim(name, "[]")
	if (*all)[name] == nil {
		(*all)[name] = l
	}
	return other((*all)[name], l)
}

func other(has, l *Listener) *Listener {
	if has == l {
		return nil
	}
	return has
}

func (h *hosts) copy() *hosts {
	return &hosts{exact: maps.Clone(h.exact), below: maps.Clone(h.below), any: h.any}
}

// longestName is how long a name of DNS may be.
const longestName = 255

// find returns the listener of a Host, which may have a port; nil if there is none.
func (h *hosts) find(host []byte) *Listener {
	if len(h.exact) == 0 && len(h.below) == 0 {
		return h.any
	}
	var memory [longestName]byte
	name, ok := plain(memory[:0], host)
	if !ok {
		return h.any
	}
	if l := h.exact[string(name)]; l != nil {
		return l
	}
	for len(h.below) > 0 {
		dot := bytes.IndexByte(name, '.')
		if dot < 0 {
			break
		}
		name = name[dot+1:]
		if l := h.below[string(name)]; l != nil {
			return l
		}
	}
	return h.any
}

// plain appends a Host in lower case, without its port, the brackets of an address and the dot of the root. It is false
// for one that is longer than names are.
func plain(to, host []byte) ([]byte, bool) {
	host = WithoutPort(host)
	if len(host) > 1 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	host = bytes.TrimSuffix(host, []byte("."))
	if len(host) > cap(to) {
		return nil, false
	}
	for _, c := range host {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		to = append(to, c)
	}
	return to, true
}

// WithoutPort returns a Host without its port.
func WithoutPort(host []byte) []byte {
	if i := bytes.LastIndexByte(host, ':'); i >= 0 && bytes.IndexByte(host[i:], ']') < 0 {
		return host[:i]
	}
	return host
}
