package resource

import (
	"slices"
	"strings"
)

// Methods are the methods that a file names for the paths of a resource. A set that names nothing leaves every method
// that the resource has a verb for.
type Methods struct {
	Collection, Item MethodSet
}

// MethodSet is a set of methods.
type MethodSet uint16

// anyMethod has every method that some verb has.
const anyMethod = ^MethodSet(1 << methodOther)

// described returns the methods that a file describes for a path of the resource.
func (r *Resource) described(template string) MethodSet {
	set := r.Methods.Collection
	if r.hasItem(template) {
		set = r.Methods.Item
	}
	switch {
	case r.Operation != nil:
		return NewMethodSet(r.Operation.Method)
	case set != 0:
		return set
	}
	end := endpoint{isItem: r.hasItem(template)}
	for m := range eachMethod {
		if end.has(m) {
			set |= 1 << m
		}
	}
	return set
}

// NewMethodSet returns the set of the named methods, with HEAD if it has GET, and with OPTIONS.
func NewMethodSet(names ...string) MethodSet {
	set := MethodSet(1 << methodOptions)
	for _, name := range names {
		set |= 1 << methodOf(name)
	}
	if set&(1<<methodGet) != 0 {
		set |= 1 << methodHead
	}
	return set &^ (1 << methodOther)
}

// Names returns the methods of the set, as the header Allow lists them.
func (s MethodSet) Names() (in []string) {
	for m := range eachMethod {
		if s&(1<<m) != 0 {
			in = append(in, methods[m])
		}
	}
	return in
}

// check refuses a method that the file does not name.
func (s *Methods) check(m method, item bool) error {
	set := s.Collection
	if item {
		set = s.Item
	}
	if set == 0 || m == methodOther || set&(1<<m) != 0 {
		return nil
	}
	return errMethod
}

// A MethodOf is a method that a path of a resource has, and its verb.
type MethodOf struct {
	Name string
	Verb Verb
}

// MethodsAt returns the methods of one of the paths that ask for something of the resource, without HEAD, which GET
// brings.
func (r *Resource) MethodsAt(template string) (all []MethodOf) {
	if r.Operation != nil {
		return []MethodOf{{r.Operation.Method, r.Operation.Verb}}
	}
	isItem := r.hasItem(template)
	for m := range eachMethod {
		if m == methodHead || !m.ofResources() {
			continue
		}
		i := Info{Group: r.Group, Resource: r.Names.Plural}
		if strings.Contains(template, "{namespace}") {
			i.Namespace = "any"
		}
		if err := i.setVerb(m, r, isItem); err == nil {
			all = append(all, MethodOf{methods[m], i.Verb})
		}
	}
	return all
}

// Verbs returns the verbs of the requests that there can be for a resource with path templates, or for a subresource of
// its objects, in the order of the methods. An operation has one verb.
func (r *Resource) Verbs(subresource string) (verbs []Verb) {
	if r.Operation != nil {
		if r.Operation.Subresource == subresource {
			verbs = append(verbs, r.Operation.Verb)
		}
		return verbs
	}
	for _, template := range r.Paths {
		isItem := r.hasItem(template)
		if subresource != "" && !(isItem && r.Subresources.Has(subresource)) {
			continue
		}
		for m := range eachMethod {
			if !m.ofResources() {
				continue
			}
			i := Info{Group: r.Group, Resource: r.Names.Plural, Subresource: subresource}
			if strings.Contains(template, "{namespace}") {
				i.Namespace = "any"
			}
			if err := i.setVerb(m, r, isItem); err == nil && !slices.Contains(verbs, i.Verb) {
				verbs = append(verbs, i.Verb)
			}
		}
	}
	for v := range Verbs {
		if of := v.Documented(); of != v && slices.Contains(verbs, of) {
			verbs = append(verbs, v)
		}
	}
	return verbs
}

// Allowed returns the methods that a path takes, as the header Allow lists them. A method that was refused is not among
// them. isServed says of each method that is not refused here whether it is served.
func Allowed(r Resolver, path []byte, refused string, isServed func(*Info, *Resource) bool) string {
	var allowed []string
	for _, method := range r.Methods() {
		if info, res, err := r.Resolve(method, path); err == nil && method != refused && isServed(&info, res) {
			allowed = append(allowed, method)
		}
	}
	return strings.Join(allowed, ", ")
}
