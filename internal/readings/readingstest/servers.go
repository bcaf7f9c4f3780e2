// Package readingstest models how servers find what a path means, and misspells paths. The tests of what decides by
// paths hold their decisions against these servers.
package readingstest

import (
	"math/rand/v2"
	"strings"
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/message"
)

// A Server returns the path by which a server routes a request for a path, and false if it refuses the request. What a
// server decodes of a path is not encoded any more.
type Server func(path string) (read string, is bool)

// Servers are models of the documented behaviour of servers, at the most lenient of their settings. None folds case,
// drops an extension or a slash at the end.
var Servers = map[string]Server{
	// ngx_http_parse_complex_uri: decoded once, merge_slashes on, '..' above the root is refused.
	"nginx": func(p string) (string, bool) {
		p, _, _ = strings.Cut(p, "#")
		p = decode(p, all)
		if strings.Contains(p, "\x00") || isAboveRoot(p, true) {
			return "", false
		}
		return resolve(merge(p)), true
	},
	"nginx, merge_slashes off": func(p string) (string, bool) {
		p, _, _ = strings.Cut(p, "#")
		p = decode(p, all)
		return resolve(p), !strings.Contains(p, "\x00")
	},
	// proxy_pass with a path sends the decoded path, encoded anew; variables in it send it as it is.
	"nginx before a server that decodes": func(p string) (string, bool) {
		p, _, _ = strings.Cut(p, "#")
		return decode(resolve(merge(decode(p, all))), all), true
	},
	// normalize_path: Chromium's canonical form, in which '\' is '/' and encoded dots are dots.
	"Envoy, normalize_path": func(p string) (string, bool) {
		return resolve(decode(strings.ReplaceAll(p, `\`, "/"), unreserved)), true
	},
	// path_with_escaped_slashes_action: UNESCAPE_AND_FORWARD, merge_slashes.
	"Envoy, unescaped slashes": func(p string) (string, bool) {
		p = strings.ReplaceAll(decode(p, slashes), `\`, "/")
		return merge(resolve(decode(p, unreserved))), true
	},
	// CoyoteAdapter: parameters are cut before the path is decoded; ALLOW_BACKSLASH, encodedSolidusHandling="decode".
	"Tomcat": func(p string) (string, bool) {
		p = strings.ReplaceAll(decode(withoutParameters(p), all), `\`, "/")
		return resolve(merge(p)), !strings.Contains(p, "\x00") && !isAboveRoot(p, true)
	},
	"Tomcat, encodedSolidusHandling passthrough": func(p string) (string, bool) {
		p = strings.ReplaceAll(decode(withoutParameters(p), exceptSlashes), `\`, "/")
		return resolve(merge(p)), !isAboveRoot(p, true)
	},
	// URIUtil.decodePath and canonicalPath of Jetty 9: empty segments are segments.
	"Jetty 9": func(p string) (string, bool) {
		return resolve(decode(withoutParameters(p), all)), !isAboveRoot(p, false)
	},
	// HttpURI of Jetty 12: dots are resolved with their parameters cut, before all else is decoded.
	"Jetty 12": func(p string) (string, bool) {
		return decode(resolve(decode(withoutParameters(p), unreserved)), exceptSlashes), true
	},
	// path-to-regexp is compared with the path as it was sent.
	"Express": func(p string) (string, bool) { return p, true },
	// express.static: decodeURIComponent, and path.normalize, on Windows with '\'.
	"Express, static files": func(p string) (string, bool) {
		p = decode(p, all)
		return resolve(merge(p)), utf8.ValidString(p) && !strings.Contains(p, "\x00")
	},
	"Express, static files on Windows": func(p string) (string, bool) {
		p = decode(p, all)
		return resolve(merge(strings.ReplaceAll(p, `\`, "/"))), utf8.ValidString(p)
	},
	// find-my-way ends a path at ';', and decodes what has no meaning in a URL.
	"Fastify": func(p string) (string, bool) {
		p, _, _ = strings.Cut(p, ";")
		p, _, _ = strings.Cut(p, "#")
		return decode(p, exceptSlashes), true
	},
	// new URL(request.url, base): '\' is '/', two slashes lead to a host, encoded dots are dots.
	"Node, WHATWG URL": func(p string) (string, bool) {
		p = strings.ReplaceAll(p, `\`, "/")
		if rest, is := strings.CutPrefix(p, "//"); is {
			_, p, _ = strings.Cut(strings.TrimLeft(rest, "/"), "/")
			p = "/" + p
		}
		p, _, _ = strings.Cut(p, "#")
		segments := strings.Split(p, "/")
		for i, s := range segments {
			if s = encodedDots.Replace(s); s == "." || s == ".." {
				segments[i] = s
			}
		}
		return resolve(strings.Join(segments, "/")), true
	},
	// ServeMux and handlers look at URL.Path.
	"Go, URL.Path": func(p string) (string, bool) { return decode(p, all), true },
	"Go, FileServer": func(p string) (string, bool) {
		return resolve(merge(decode(p, all))), true
	},
	// HTTP.sys and ASP.NET with allowDoubleEscaping; names of files have no control characters, and end before blanks
	// and dots.
	"IIS": func(p string) (string, bool) {
		p = strings.ReplaceAll(decode(decode(p, all), all), `\`, "/")
		segments := strings.Split(resolve(merge(p)), "/")
		for i, s := range segments {
			if s = strings.TrimRight(s, " "); s != "." && s != ".." {
				s = strings.TrimRight(s, " .")
			}
			segments[i] = s
		}
		p = resolve(strings.Join(segments, "/"))
		return p, !strings.ContainsFunc(p, func(c rune) bool { return c < ' ' })
	},
	// UrlPathHelper: removeSemicolonContent, decodeRequestString, getSanitizedPath.
	"Spring, AntPathMatcher": func(p string) (string, bool) { return merge(decode(withoutParameters(p), all)), true },
	// PathContainer: segments are decoded each.
	"Spring, PathPattern": func(p string) (string, bool) { return decode(withoutParameters(p), exceptSlashes), true },
	// ResourceHttpRequestHandler: '\' and '//' are '/', StringUtils.cleanPath, and the same decoded.
	"Spring, static files": func(p string) (string, bool) {
		p = merge(strings.ReplaceAll(decode(withoutParameters(p), all), `\`, "/"))
		return resolve(decode(resolve(p), all)), true
	},
	// ap_unescape_url_keep2f, MergeSlashes on, AllowEncodedSlashes NoDecode.
	"Apache httpd": func(p string) (string, bool) {
		p = merge(decode(decode(p, unreserved), exceptSlashes))
		return resolve(p), !strings.Contains(p, "\x00") && !isAboveRoot(p, false)
	},
	// PATH_INFO is decoded once.
	"WSGI (Django, Flask)": func(p string) (string, bool) { return merge(decode(p, all)), true },
	"a server in C": func(p string) (string, bool) { // whose strings end at NUL
		p, _, _ = strings.Cut(decode(p, all), "\x00")
		return p, true
	},
	"a program that parses the decoded path again": func(p string) (string, bool) {
		p = decode(p, all)
		if i := strings.IndexAny(p, "?#"); i >= 0 {
			p = p[:i]
		}
		return resolve(p), true
	},
	"two servers that decode, one cuts parameters": func(p string) (string, bool) {
		return resolve(merge(withoutParameters(decode(decode(p, all), all)))), true
	},
}

// Spell returns what a client has to send for a path that was decoded.
func Spell(read string) string {
	const digits = "0123456789ABCDEF"
	var made strings.Builder
	for i := range len(read) {
		c := read[i]
		isSent := c > ' ' && c < 0x7f && c != '?' && c != '#'
		if c == '%' {
			isSent = i+2 < len(read) && message.HexDigit(read[i+1]) >= 0 && message.HexDigit(read[i+2]) >= 0
		}
		if isSent {
			made.WriteByte(c)
			continue
		}
		made.WriteString("%" + string(digits[c>>4]) + string(digits[c&15]))
	}
	return made.String()
}

// Misspell changes how a path is spelled, at one place.
func Misspell(r *rand.Rand, p string) string {
	at := r.IntN(len(p))
	insert := func(what ...string) string { return p[:at] + what[r.IntN(len(what))] + p[at:] }
	switch r.IntN(7) {
	case 0, 1:
		const digits = "0123456789abcdef"
		encoded := string(digits[p[at]>>4]) + string(digits[p[at]&15])
		return p[:at] + []string{"%", "%25", "%2525"}[r.IntN(3)] + encoded + p[at+1:]
	case 2:
		return insert("/", "//", `\`, "%2F", "%5C", "%252f", "%5c..%5c")
	case 3:
		return insert("/.", "/..", "/x/..", "/%2e", "/%2E%2e", "/./", "/.;x/", "/..;/", "/.%2e/", "/x/..%2f")
	case 4:
		return insert(";", ";a=b", "/;v=1", "%3B", ";/../")
	case 5:
		return p + []string{"/", "%20", ".", "%00", "%00.png", "%0A", "%3F", "%23", "#x", "%09", "//", "/.", ";x",
			"/..", "%c0%af"}[r.IntN(15)]
	}
	return insert("%20", "%c0%af..%c0%af", "%25u002f", "%EF%BC%8F", "%2e%2e/", "//x")
}

var encodedDots = strings.NewReplacer("%2e", ".", "%2E", ".")

func all(byte) bool { return true }

func slashes(c byte) bool { return c == '/' || c == '\\' }

func exceptSlashes(c byte) bool { return !slashes(c) }

func unreserved(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// decode decodes the bytes for which f is true.
func decode(p string, f func(byte) bool) string {
	var made strings.Builder
	for i := 0; i < len(p); i++ {
		if p[i] == '%' && i+2 < len(p) {
			high, low := message.HexDigit(p[i+1]), message.HexDigit(p[i+2])
			if c := byte(high<<4 | low); high >= 0 && low >= 0 && f(c) {
				made.WriteByte(c)
				i += 2
				continue
			}
		}
		made.WriteByte(p[i])
	}
	return made.String()
}

func merge(p string) string {
	for strings.Contains(p, "//") {
		p = strings.ReplaceAll(p, "//", "/")
	}
	return p
}

// resolve is remove_dot_segments of RFC 3986, 5.2.4.
func resolve(p string) string {
	var out string
	for p != "" {
		switch {
		case strings.HasPrefix(p, "/./"):
			p = p[2:]
		case p == "/.":
			p = "/"
		case strings.HasPrefix(p, "/../"), p == "/..":
			p = "/" + strings.TrimPrefix(p[3:], "/")
			out = out[:max(strings.LastIndexByte(out, '/'), 0)]
		default:
			end := strings.IndexByte(p[1:], '/') + 1
			if end == 0 {
				end = len(p)
			}
			out, p = out+p[:end], p[end:]
		}
	}
	if out == "" {
		return "/"
	}
	return out
}

// isAboveRoot reports whether '..' leads out of the root.
func isAboveRoot(p string, isMerged bool) bool {
	depth := 0
	for segment := range strings.SplitSeq(strings.TrimPrefix(p, "/"), "/") {
		switch {
		case segment == "..":
			depth--
		case segment != "." && (segment != "" || !isMerged):
			depth++
		}
		if depth < 0 {
			return true
		}
	}
	return false
}

func withoutParameters(p string) string {
	segments := strings.Split(p, "/")
	for i, s := range segments {
		segments[i], _, _ = strings.Cut(s, ";")
	}
	return strings.Join(segments, "/")
}
