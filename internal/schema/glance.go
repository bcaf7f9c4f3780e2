package schema

import (
	"math"
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/compare"
)

// Most scalars are right at a glance. Walks ask the glance of their shape first, which is compiled from the keywords, and
// [validator.plain] of what it does not take.

// glanceOf makes the glance of a shape.
func glanceOf(s *Shape) document.Glance {
	g := document.NoGlance()
	if s.logic != nil || s.enum != nil {
		return g
	}
	if s.accepts[document.Bool] == match {
		g.Kinds.Add(document.Bool)
	}
	if s.accepts[document.String] == match {
		if s.text == nil {
			g.Kinds.Add(document.String)
		} else {
			g.Shortest, g.Longest = s.text.sizes()
		}
	}
	switch verdict := s.accepts[document.Number]; {
	case verdict == mismatch:
	case s.number != nil:
		g.Least, g.Most = s.number.integers()
	case verdict == match:
		g.Kinds.Add(document.Number)
	default:
		g.Least, g.Most = math.MinInt64, math.MaxInt64
	}
	return g
}

// know makes the table of an object's properties. There is no glance at members that every Kubernetes object has.
func (o *objectRules) know() {
	members := make([]document.KnownMember, len(o.properties))
	for i := range o.properties {
		p := &o.properties[i]
		members[i] = document.KnownMember{Glance: document.NoGlance(), Bit: p.bit}
		if p.implied == ordinary && p.Shape != nil {
			members[i].Glance = glanceOf(p.Shape)
		}
	}
	o.known = document.NewKnown(o.names, members)
}

// sizes returns how many bytes a string may have that is surely right; 1 and 0 if that is not known.
func (t *textRules) sizes() (shortest, longest int32) {
	if t.pattern != nil || t.format != nil || t.minLength > math.MaxInt32/utf8.UTFMax {
		return 1, 0
	}
	longest = math.MaxInt32
	if t.maxLength >= 0 {
		longest = int32(min(t.maxLength, math.MaxInt32))
	}
	return int32(max((t.minLength-1)*utf8.UTFMax+1, 0)), longest
}

// integers returns the least and the greatest integer that is surely right; 1 and 0 if that is not known. They fit a float32,
// whatever they are.
func (r *numberRules) integers() (least, most int64) {
	least, most = r.low, r.high
	if b := r.minimum; b != nil {
		if math.Abs(b.value) > compare.MaxSafe {
			return 1, 0
		}
		bound := int64(math.Ceil(b.value))
		if b.exclusive && float64(bound) == b.value {
			bound++
		}
		least = max(least, bound)
	}
	if b := r.maximum; b != nil {
		if math.Abs(b.value) > compare.MaxSafe {
			return 1, 0
		}
		bound := int64(math.Floor(b.value))
		if b.exclusive && float64(bound) == b.value {
			bound--
		}
		most = min(most, bound)
	}
	if r.multipleOf != nil {
		return 1, 0
	}
	return least, most
}
