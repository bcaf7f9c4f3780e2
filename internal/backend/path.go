package backend

import "strings"

// target is the thing that a path names: a collection, or the item called name in it. An object of
// a namespaced Kubernetes resource belongs to the collection of its namespace and to the collection
// of all namespaces.
type target struct {
	// collection is the path of all objects of one kind; in Kubernetes paths without the namespace.
	collection string
	// namespace is set for collections and items within a Kubernetes namespace.
	namespace string
	// name is the item's; empty for a collection.
	name string
}

// parsePath reads a path by its structure, byte for byte.
//
//	/api/V/R, /apis/G/V/R                        collection (of all namespaces)
//	/api/V/R/NAME, /apis/G/V/R/NAME              item
//	/api/V/namespaces/NS/R[/NAME], /apis/G/V/…   collection, item in a namespace
//	[/vN]/a, [/vN]/a/b/c, …                      collection: an odd number of segments
//	[/vN]/a/b, [/vN]/a/b/c/d, …                  item: an even number
//
// Anything else, and any empty segment, is not found.
func parsePath(path string) (target, bool) {
	if len(path) < 2 || path[0] != '/' || path[len(path)-1] == '/' || strings.Contains(path, "//") {
		return target{}, false
	}
	first, rest, _ := strings.Cut(path[1:], "/")
	switch first {
	case "api":
		return kubernetesPath(path, rest, 1)
	case "apis":
		return kubernetesPath(path, rest, 2)
	}
	segments := strings.Count(path, "/")
	if isVersion(first) {
		segments--
	}
	switch {
	case segments == 0:
		return target{}, false
	case segments%2 == 1:
		return target{collection: path}, true
	}
	slash := strings.LastIndexByte(path, '/')
	return target{collection: path[:slash], name: path[slash+1:]}, true
}

// kubernetesPath reads what follows /api or /apis: first prefix segments (version, or group and version), then the
// resource.
func kubernetesPath(path, rest string, prefix int) (target, bool) {
	for range prefix {
		var found bool
		if _, rest, found = strings.Cut(rest, "/"); !found {
			return target{}, false
		}
	}
	root := path[:len(path)-len(rest)] // ends in a slash
	resource, name, _ := strings.Cut(rest, "/")
	var namespace string
	if resource == "namespaces" {
		if ns, inner, within := strings.Cut(name, "/"); within {
			namespace = ns
			resource, name, _ = strings.Cut(inner, "/")
		}
	}
	if strings.Contains(name, "/") { // a subresource, which a plain API does not have
		return target{}, false
	}
	return target{collection: root + resource, namespace: namespace, name: name}, true
}

// isVersion reports whether a segment looks like v1, v2beta1 or v1alpha3.
func isVersion(s string) bool {
	digits := func(s string) int {
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		return n
	}
	if s == "" || s[0] != 'v' {
		return false
	}
	s = s[1:]
	n := digits(s)
	if n == 0 {
		return false
	}
	s = s[n:]
	if s == "" {
		return true
	}
	stage, ok := strings.CutPrefix(s, "alpha")
	if !ok {
		stage, ok = strings.CutPrefix(s, "beta")
	}
	return ok && stage != "" && digits(stage) == len(stage)
}
