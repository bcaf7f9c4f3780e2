package cel

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// An expression that exceeds its cost limit does so because of what it goes through. The client can
// only shorten that, so the error names it.

// wholesOf are the places that an expression reads, up to the first index or item, each once: the lists, maps and
// strings of the client's object that can make it cost more.
func wholesOf(reads []Read) (wholes []Read) {
	for _, r := range reads {
		if i := slices.IndexFunc(r.Path, func(s ReadStep) bool { return s.Any }); i >= 0 {
			r.Path = r.Path[:i]
		}
		r.Deep = false
		if !slices.ContainsFunc(wholes, func(w Read) bool { return w.Root == r.Root && slices.Equal(w.Path, r.Path) }) {
			wholes = append(wholes, r)
		}
	}
	return wholes
}

// leastLong is how many bytes a list, map or string has in JSON that can make an expression exceed its limit: a list of
// 50 numbers, in four loops. A shorter one is not what has to be shortened.
const leastLong = 100

// shorten says which of the places that the expression reads is the longest, or the largest number of items that it
// makes; "" if none is long enough to be the cause.
func (p *Program) shorten(v *Vars) string {
	longest, says := 1, ""
	for i := range p.wholes {
		r := &p.wholes[i]
		n := r.in(v)
		if !n.Valid() || len(n.Raw()) < leastLong {
			continue
		}
		length, unit := 0, ""
		switch n.Kind() {
		case document.Array:
			length, unit = n.Len(), "items"
		case document.Object:
			length, unit = n.Len(), "members"
		case document.String:
			length, unit = utf8.RuneCountInString(n.Str()), "characters"
		}
		if length > longest {
			longest, says = length, fmt.Sprintf("; shorten %s, which has %d %s", r.text(), length, unit)
		}
	}
	for i := range p.counts {
		r := &p.counts[i]
		n := r.in(v)
		if !n.Valid() || n.Kind() != document.Number {
			continue
		}
		if count, ok := n.Int64(); ok && count > int64(longest) {
			longest, says = int(count), fmt.Sprintf("; reduce %s, which is %d", r.text(), count)
		}
	}
	return says
}

// in is the value at the place, invalid if there is none.
func (r *Read) in(v *Vars) document.Node {
	n := v.Bindings.Slots[r.Root].Node
	for _, s := range r.Path {
		if s.Any || !n.Valid() || n.Kind() != document.Object {
			return document.Node{}
		}
		n, _ = n.Get(s.Name)
	}
	return n
}

// text is the place as an expression writes it. What self is, the field of the failure says.
func (r *Read) text() string {
	if r.Root == value.Self && len(r.Path) == 0 {
		return "it"
	}
	var b strings.Builder
	b.WriteString(map[value.Slot]string{value.Self: plan.NameSelf, value.Object: plan.NameObject}[r.Root])
	for _, s := range r.Path {
		if strings.Trim(s.Name, "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == "" {
			b.WriteString("." + s.Name)
		} else {
			b.WriteString("['" + s.Name + "']")
		}
	}
	return b.String()
}
