package explain

import (
	"fmt"
	"slices"
)

// implied reports whether the statement says no more than that something is set in which the
// subject stands.
func (s statement) implied(subject operand) bool {
	return s.present && s.subject.kind == operandPlace && subject.kind == operandPlace &&
		subject.place.within(s.subject.place)
}

// when is the statement under conditions; false if one of them has no words.
func (s statement) when(conditions []statement) (statement, bool) {
	var texts []string
	for _, c := range conditions {
		if c.raw || s.raw {
			return s, false
		}
		if !c.implied(s.subject) {
			texts = append(texts, c.String())
		}
	}
	if len(texts) == 0 {
		return s, true
	}
	when := " when " + enumerate(texts, "and")
	if s.text != "" {
		s.text += when
	} else {
		s.is += when
	}
	s.present = false
	return s, true
}

func (s statement) String() string {
	switch {
	case s.text != "":
		return s.text
	case s.subject.text == "":
		return "the value " + s.is
	}
	return s.subject.text + " " + s.is
}

// statements say that the clause holds. Several are true together.
func (c *clause) statements() []statement {
	switch c.kind {
	case clauseAtom:
		switch c.atom.kind {
		case atomOther:
			return c.raw()
		case atomSentence, atomAnyPresence:
			return []statement{{text: c.atom.is}}
		}
		s := c.atom.subject
		return []statement{{
			subject: s, is: c.atom.is, present: c.atom.kind == atomPresence,
			past: s.kind == operandPlace && (s.place.base == baseOld || s.text == "`request.operation`"),
		}}
	case clauseAll:
		var all []statement
		for _, part := range c.parts {
			all = append(all, part.statements()...)
		}
		return all
	case clauseUnless:
		if demand := c.parts[0].statements(); len(demand) == 1 {
			if s, ok := demand[0].when(c.when); ok {
				return []statement{s}
			}
		}
	case clauseEach:
		if c.description.is != "" {
			return []statement{{subject: c.items, is: c.description.is}}
		}
	}
	return c.raw()
}

// raw says that the clause holds in the words of CEL.
func (c *clause) raw() []statement {
	text := "further conditions hold"
	if c.source != "" && c.source != unreadable {
		text = fmt.Sprintf("`%s` is %t", c.source, c.want)
	}
	return []statement{{raw: true, text: text}}
}

// anyOf is a demand that leaves a choice.
func anyOf(alternatives []*clause) atom {
	for _, c := range alternatives {
		if c.kind != clauseAtom || c.atom.kind == atomOther {
			return atom{subject: commonAbout(alternatives)}
		}
	}
	first := alternatives[0].atom
	same, values, presences := true, true, true
	var must, is, names []string
	a := atom{kind: atomPlain, subject: first.subject}
	for _, c := range alternatives {
		x := c.atom
		same = same && x.subject.kind == operandPlace && first.subject.kind == operandPlace &&
			x.subject.place.equal(first.subject.place)
		values = values && len(x.supported) > 0
		presences = presences && x.kind == atomPresence
		a.supported = append(a.supported, x.supported...)
		must = append(must, x.must)
		is = append(is, x.is)
		names = append(names, x.subject.text)
	}
	if same {
		a.must, a.is = enumerate(must, "or"), enumerate(is, "or")
		if values {
			a.kind = atomSupported
			texts := enumerate(literalTexts(a.supported), "or")
			a.must, a.is = "must be "+texts, "is "+texts
		} else {
			a.supported = nil
		}
		return a
	}
	a.supported = nil
	a.subject = commonAbout(alternatives)
	if slices.Contains(names, "") {
		return atom{subject: a.subject}
	}
	if presences {
		a.kind = atomAnyPresence
		a.must = "must have at least one of " + enumerate(names, "and")
		a.is = enumerate(names, "or") + " is set"
		return a
	}
	for i := range must {
		must[i] = names[i] + " " + must[i]
		is[i] = names[i] + " " + is[i]
	}
	a.kind, a.must, a.is = atomSentence, enumerate(must, "or"), enumerate(is, "or")
	return a
}
