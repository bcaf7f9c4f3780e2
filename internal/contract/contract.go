// Package contract checks requests against what a document says of their operation: the parameters in
// path, query, headers and cookies, the media types with the schema of each, the fields of forms, and
// the credentials that have to be there. It checks answers against a document in the same way.
//
// The texts of the parameters become one JSON object, by the types that they stand for, and that
// object is checked against a compiled schema. So the words for what is wrong are the same as for
// bodies, and fields begin with the place of the parameter: query.limit, path.id.
package contract

import (
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
)

// Contract has the operations of one resource. It is immutable and safe for concurrent use.
type Contract struct {
	operations [resource.NumVerbs]*Operation
	targets    map[Target]*Operation // of a resource at the paths of an API server
	hasAnswers bool
}

// A Target identifies an operation on a resource at the paths of an API server. A list of all
// namespaces is another than the list of one, and so are the parameters in their paths.
type Target struct {
	Verb         resource.Verb
	Subresource  string
	IsNamespaced bool
}

// SetAt sets the operation of a target.
func (c *Contract) SetAt(t Target, o *Operation) {
	if c.targets == nil {
		c.targets = map[Target]*Operation{}
	}
	c.targets[t] = o
}

// Operation says what a document demands of requests of one verb.
type Operation struct {
	// Parameters are in the order of their places.
	Parameters []Parameter
	// Values is the schema of the object that the values of the parameters make: a member for each place, and in it one
	// for each parameter. It is nil if there are none.
	Values *schema.Schema
	// Bodies are the media types of bodies; nil if the document says nothing of them. MayBeEmpty reports whether the
	// document lets the request have no body: it declares none, or none that is required.
	Bodies     []Body
	MayBeEmpty bool
	// Answers are the answers that are declared; nil if they are not checked against the document.
	Answers []Answer
	// Underscored are the headers with a '_' in their names that the document declares.
	Underscored []string
	// Security has the sets of credentials. A request needs one of the sets, and nothing if there is none.
	Security []Credentials
}

// Credentials are a set that a request needs all of. Whether they are right the API knows.
type Credentials []Credential

// A Credential is a thing by which clients say who they are.
type Credential struct {
	// Scheme is a scheme of the header Authorization, such as 'Bearer'; empty for a key.
	Scheme string
	// In and Name are the place of a key.
	In   Place
	Name string
}

// Set sets the operation of a verb.
func (c *Contract) Set(verb resource.Verb, o *Operation) {
	if verb == resource.VerbOther {
		return
	}
	c.operations[verb.Documented()] = o
	c.hasAnswers = c.hasAnswers || len(o.Answers) > 0
}

// HasAnswers reports whether answers are checked against the document.
func (c *Contract) HasAnswers() bool { return c != nil && c.hasAnswers }

// Of returns the operation of a request; nil if there is none.
func (c *Contract) Of(i *resource.Info) *Operation {
	switch {
	case c == nil:
		return nil
	case i.APIPrefix != "":
		return c.targets[Target{i.Verb.Documented(), i.Subresource, i.ObjectNamespace() != ""}]
	}
	return c.operations[i.Verb.Documented()]
}

// BodyOf returns what is declared for a media type, in lower case; nil if nothing is. A type goes before a range, and a
// longer range before a shorter one.
func (o *Operation) BodyOf(media string) (of *Body) {
	for k := range o.Bodies {
		if b := &o.Bodies[k]; covers(b.Media, media) && (of == nil || rank(b.Media) > rank(of.Media)) {
			of = b
		}
	}
	return of
}

// HasHeader implements [message.HeaderNames].
func (o *Operation) HasHeader(name []byte) bool {
	return slices.ContainsFunc(o.Underscored, func(one string) bool { return strings.EqualFold(one, str(name)) })
}

// Accepted returns the media types as messages show them.
func (o *Operation) Accepted() string {
	types := make([]string, len(o.Bodies))
	for k := range o.Bodies {
		types[k] = o.Bodies[k].Media
	}
	return strings.Join(types, ", ")
}

// Forms returns the media types that are forms, as messages show them; "" if none is.
func (o *Operation) Forms() string {
	var types []string
	for k := range o.Bodies {
		if o.Bodies[k].Form != nil {
			types = append(types, o.Bodies[k].Media)
		}
	}
	return strings.Join(types, ", ")
}
