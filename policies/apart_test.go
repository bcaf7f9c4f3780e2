package policies

import "github.com/admission-gateway/gateway/policies/source"

// CompileApart is CompileFor by the slow way: no two policies share what they have in common.
func CompileApart(s *source.Source, g Gateway) (*Set, []Finding) {
	l := newLoader(&g)
	l.common = nil
	set, found := l.compile(s)
	return set.suited(g, found)
}
