package graph

import "github.com/admission-gateway/gateway/internal/document"

// Walk is Check without the short way.
func (s *Schema) Walk(v document.Node, use Use) Result { return s.check(v, use, true) }
