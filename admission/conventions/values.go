package conventions

import (
	"math"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// values checks the numbers and dates of the part that is written. Metadata has checks of its own.
func (c *checker) values() {
	if c.Part == StatusAlone {
		s := c.shape()
		for _, key := range c.Status {
			s = member(s, key)
		}
		c.value(s, c.status, false)
		return
	}
	if c.Bare {
		c.value(c.shape(), c.Root, true)
		return
	}
	for m := c.Root.First(); m.Valid(); m = m.Next() {
		switch key := m.Key(); {
		case m == c.status:
			c.ofStatus(c.shape(), m)
		case key != "apiVersion" && key != "kind" && key != "metadata":
			c.value(member(c.shape(), key), m, key == "spec")
		}
	}
}

// ofStatus checks the status within an object that is written.
func (c *checker) ofStatus(parent *schema.Shape, status document.Node) {
	if c.Part == Whole {
		c.value(member(parent, status.Key()), status, false)
	}
}

// value checks a value. In a spec, numbers may have no fractions.
func (c *checker) value(s *schema.Shape, v document.Node, spec bool) {
	switch v.Kind() {
	case document.Object:
		for m := v.First(); m.Valid(); m = m.Next() {
			if m == c.status {
				c.ofStatus(s, m)
			} else {
				c.value(member(s, m.Key()), m, spec)
			}
		}
	case document.Array:
		var items *schema.Shape
		if s != nil {
			items = s.Items()
		}
		for n := v.First(); n.Valid(); n = n.Next() {
			c.value(items, n, spec)
		}
	case document.Number:
		c.number(v, spec)
	case document.String:
		if c.on(Dates) && isDate(s, v) && !isRFC3339(v.Str()) {
			c.found(Dates, v, c.invalid(v, "must be a date of RFC 3339, such as '2006-01-02T15:04:05Z'"))
		}
	}
}

// safe is the first integer that a double does not distinguish from its neighbours.
const safe = 1 << 53

func (c *checker) number(v document.Node, spec bool) {
	if i, ok := v.Int64(); ok && i < safe && i > -safe {
		return
	} else if f, _ := v.Float64(); ok || f == math.Trunc(f) {
		c.found(UnsafeIntegers, v,
			c.invalid(v, "must be greater than -9007199254740992 and less than 9007199254740992, "+
				"because clients in JavaScript read other integers as another number; it may be a string instead"))
	} else if spec {
		c.found(FractionsInSpec, v, c.invalid(v, "must be an integer, or a quantity in a string: a number with a fraction is not the same to every client"))
	}
}

// isDate reports whether a string is meant to be a date: by the format in its schema, else by its
// name.
func isDate(s *schema.Shape, v document.Node) bool {
	if format := s.Format(); format != "" {
		return format == "date-time" || format == "datetime"
	}
	key := v.Key()
	return strings.HasSuffix(key, "Time") || strings.HasSuffix(key, "Timestamp") || key == "time" || key == "timestamp"
}

func isRFC3339(s string) bool {
	var t time.Time
	return t.UnmarshalText([]byte(s)) == nil
}

// member is the shape of an object's member; nil if it is not known.
func member(s *schema.Shape, key string) *schema.Shape {
	if s == nil {
		return nil
	}
	if p := s.Property(key); p != nil {
		return p.Shape
	}
	return s.Additional()
}
