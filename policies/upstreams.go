package policies

import (
	"fmt"
	"slices"

	"github.com/admission-gateway/gateway/internal/manifest"
)

// upstreamUse is where a file names an upstream of the gateway's configuration.
type upstreamUse struct {
	name string
	at   Finding
}

// useUpstream notes that a file names an upstream.
func (l *loader) useUpstream(o *manifest.Object, path, name string) {
	if name != "" {
		l.upstreams = append(l.upstreams, upstreamUse{name, Finding{File: o.File, Line: o.Line(path), Field: path}})
	}
}

// lacking is what the files ask of a gateway that it does not have: an error for each.
func (s *Set) lacking(g Gateway) []Finding {
	var found []Finding
	if !g.SharedLimits {
		found = append(found, s.sharing...)
	}
	if g.Upstreams == nil {
		return found
	}
	for _, use := range s.upstreams {
		if slices.Contains(g.Upstreams, use.name) {
			continue
		}
		use.at.Message = fmt.Sprintf("must be the name of an upstream of the configuration: %s", quoted(slices.Sorted(slices.Values(g.Upstreams))))
		found = append(found, use.at)
	}
	return found
}

// Gateway is what a gateway's configuration has that policy files may ask for.
type Gateway struct {
	// Upstreams are the names of the backends; nil if they are not known.
	Upstreams []string
	// SharedLimits tells whether there is a store for limits that gateways share.
	SharedLimits bool
}

// CheckFor returns what Load finds, and what the files ask for that the gateway does not have.
func CheckFor(paths []string, g Gateway) []Finding {
	_, found := compileFor(readSource(paths), g)
	return found
}

// compileFor compiles files for a gateway.
func compileFor(s *source, g Gateway) (*Set, []Finding) {
	set, found := compile(s)
	if set == nil {
		return nil, found
	}
	if lacking := set.lacking(g); len(lacking) > 0 {
		return nil, sortFindings(append(found, lacking...))
	}
	return set, found
}
