// Package routes finds the route of a request by its host and path, in a tree that is compiled when the gateway
// starts. A named host goes before any host, and the longest prefix before shorter ones; prefixes are compared by
// whole segments.
package routes

import (
	"bytes"
	"strings"
)

// A Tree finds routes. The zero value has none. It must not change while it is used.
type Tree[R any] struct {
	byHost  map[string]*node[R] // by the host in lower case, without a port
	anyHost *node[R]
}

// node is a prefix of paths, up to the end of a segment.
type node[R any] struct {
	route    R
	hasRoute bool
	below    map[string]*node[R] // by the next segment
}

// Add adds a route from a host ("" is any) and the paths at or below a prefix ("" is every path). The first route of
// two with the same host and prefix counts.
func (t *Tree[R]) Add(host, prefix string, route R) {
	at := t.root(strings.ToLower(host))
	for rest := prefix; rest != ""; {
		var segment string
		segment, rest = cut(rest)
		next := at.below[segment]
		if next == nil {
			if at.below == nil {
				at.below = make(map[string]*node[R])
			}
			next = &node[R]{}
			at.below[segment] = next
		}
		at = next
	}
	if !at.hasRoute {
		at.route, at.hasRoute = route, true
	}
}

// root returns the tree of a host, which it makes.
func (t *Tree[R]) root(host string) *node[R] {
	if host == "" {
		if t.anyHost == nil {
			t.anyHost = &node[R]{}
		}
		return t.anyHost
	}
	if t.byHost == nil {
		t.byHost = make(map[string]*node[R])
	}
	if t.byHost[host] == nil {
		t.byHost[host] = &node[R]{}
	}
	return t.byHost[host]
}

// Find returns the route of a request by its Host, which may have a port, and its path. It does not allocate
// unless the host has capital letters.
func (t *Tree[R]) Find(host []byte, path string) (route R, found bool) {
	if len(t.byHost) > 0 {
		if at := t.byHost[string(lower(withoutPort(host)))]; at != nil {
			if route, found = at.find(path); found {
				return route, true
			}
		}
	}
	return t.anyHost.find(path)
}

// find returns the route with the longest prefix of a path.
func (n *node[R]) find(path string) (route R, found bool) {
	for rest := path; n != nil; {
		if n.hasRoute {
			route, found = n.route, true
		}
		if rest == "" || n.below == nil {
			break
		}
		var segment string
		segment, rest = cut(rest)
		n = n.below[segment]
	}
	return route, found
}

// cut returns the first segment of a path with its slash, and the rest.
func cut(path string) (segment, rest string) {
	if end := strings.IndexByte(path[1:], '/'); end >= 0 {
		return path[:end+1], path[end+1:]
	}
	return path, ""
}

func withoutPort(host []byte) []byte {
	if i := bytes.LastIndexByte(host, ':'); i >= 0 && bytes.IndexByte(host[i:], ']') < 0 {
		host = host[:i]
	}
	return host
}

// lower returns a host in lower case; itself if it is so already.
func lower(host []byte) []byte {
	for _, c := range host {
		if 'A' <= c && c <= 'Z' || c >= 0x80 {
			return bytes.ToLower(host)
		}
	}
	return host
}
