package rewrite

import (
	"slices"
	"strings"
)

// Location returns what a Location or Content-Location of the backend is to a client that asked by a Host.
func (r *Rules) Location(value, host string) string {
	scheme, rest, found := strings.Cut(value, "//")
	if !found || scheme != "" && !strings.EqualFold(scheme, "http:") && !strings.EqualFold(scheme, "https:") {
		if strings.HasPrefix(value, "/") {
			shown, _ := r.path(value)
			return shown
		}
		return value // relative to what was asked, or of another scheme
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, path := rest[:end], rest[end:]
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	path, isLed := r.path(path)
	switch {
	case !isLed:
	case strings.EqualFold(authority, host):
		return scheme + "//" + authority + path
	case r.Host != "" && strings.EqualFold(authority, r.Host), isOf(authority, r.Authorities):
		return path // on whatever host the client asked
	}
	return value
}

// Own returns a Location or Content-Location as a client sees it that asked by a Host, where no path is rewritten: a
// URL by which a backend names itself becomes its path, for the client may not know that address.
func Own(value, host string, authorities []string) string {
	scheme, rest, found := strings.Cut(value, "//")
	if !found || scheme != "" && !strings.EqualFold(scheme, "http:") && !strings.EqualFold(scheme, "https:") {
		return value
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, path := rest[:end], rest[end:]
	switch {
	case strings.EqualFold(authority, host) || !isOf(authority, authorities):
		return value
	case strings.HasPrefix(path, "//"):
		return value // which would name another host
	case !strings.HasPrefix(path, "/"):
		return "/" + path
	}
	return path
}

// isOf reports whether a host and port is one of some.
func isOf(authority string, all []string) bool {
	return slices.ContainsFunc(all, func(one string) bool { return strings.EqualFold(one, authority) })
}

// path returns what a path of the backend is to clients, and whether this route leads to it; another one stays.
func (r *Rules) path(path string) (string, bool) {
	rest, found := strings.CutPrefix(path, r.To)
	if !found || rest != "" && !strings.ContainsRune("/?#", rune(rest[0])) {
		return path, false
	}
	if r.From == "" && !strings.HasPrefix(rest, "/") {
		return "/" + rest, true
	}
	return r.From + rest, true
}

// Cookie returns what a Set-Cookie of the backend is to clients: its Path changes.
func (r *Rules) Cookie(value string) string {
	if r.From == r.To {
		return value
	}
	parts := strings.Split(value, ";")
	for i, part := range parts[1:] {
		name, path, _ := strings.Cut(part, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "Path") {
			continue
		}
		if path = strings.Trim(path, " \t"); strings.HasPrefix(path, "/") {
			parts[i+1] = name + "=" + r.cookiePath(path)
		}
	}
	return strings.Join(parts, ";")
}

// cookiePath returns what the path of a cookie is to clients. One above To means all that the backend serves.
func (r *Rules) cookiePath(path string) string {
	whole := strings.TrimSuffix(path, "/")
	if strings.HasPrefix(r.To, whole) && (len(r.To) == len(whole) || r.To[len(whole)] == '/') {
		if r.From == "" {
			return "/"
		}
		return r.From
	}
	shown, _ := r.path(path)
	return shown
}
