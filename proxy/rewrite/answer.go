package rewrite

import "strings"

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
	case r.Host != "" && strings.EqualFold(authority, r.Host), strings.EqualFold(authority, r.Authority):
		return path // on whatever host the client asked
	}
	return value
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
