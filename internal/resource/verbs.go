package resource

import (
	"net/http"
	"slices"
	"strings"
)

// A Verb says what a request does with a resource. It is what RBAC rules, rate limits and audit
// events call a verb. The table below has everything that the gateway knows of one.
type Verb uint8

// The verbs.
const (
	// VerbOther is the verb of a request whose method has none.
	VerbOther Verb = iota
	VerbGet
	VerbList
	VerbWatch
	VerbCreate
	VerbUpdate
	VerbPatch
	VerbDelete
	VerbDeleteCollection
	// The verbs from here on are methods. Only paths that are no resource have them, but OPTIONS is
	// for any path.
	VerbHead
	VerbPost
	VerbPut
	VerbOptions

	// NumVerbs is the number of verbs, VerbOther among them, for arrays with an element for each.
	NumVerbs = iota
)

// verbs is the table of verbs. To add one is to add a constant and its row; what serves its
// requests is in proxy, in a file of its own.
var verbs = [NumVerbs]struct {
	// name is the verb in RBAC rules, rate limits, audit events, expressions and metrics.
	name string
	// methods are the HTTP methods that ask for the verb, the usual one first. A method that no row above
	// has is a new one.
	methods []string
	// object and collection say what the path of a request leads to. A verb with neither is not a
	// verb of resources.
	object, collection bool
	// everywhere is set for verbs on a collection over all namespaces, part for those on the status
	// and scale of an object.
	everywhere, part bool
	// variant is the verb that asks the same of the same paths; a parameter makes the difference.
	variant Verb
	// operation is what a request is admitted as; 0 if it changes nothing that is stored.
	operation AdmissionOperation
	// reads is set if the answer is what is stored. Such a request may be sent again.
	reads bool
	// isSafe is set if clients do not expect the request to change anything (RFC 9110, 9.2.1).
	isSafe bool
	// hasBody is set if requests carry an object or a patch.
	hasBody bool
	// selects is set if label and field selectors choose the objects.
	selects bool
	// lasts is set if the answer goes on for as long as the client likes.
	lasts bool
	// schema is the schema of the objects that requests carry or ask for.
	schema SchemaUse
	// options is the kind of the options in the query or the body; "" if there are none.
	options string
}{
	VerbGet: {
		name: "get", methods: []string{"GET", "HEAD"}, object: true, part: true, reads: true, isSafe: true,
		schema: SchemaOfReads,
	},
	VerbList: {
		name: "list", methods: []string{"GET", "HEAD"}, collection: true, everywhere: true, reads: true, isSafe: true,
		selects: true, schema: SchemaOfReads,
	},
	VerbWatch: {
		name: "watch", methods: []string{"GET", "HEAD"}, collection: true, everywhere: true, variant: VerbList,
		reads: true, isSafe: true, selects: true, lasts: true, schema: SchemaOfReads,
	},
	VerbCreate: {
		name: "create", methods: []string{"POST"}, collection: true, operation: AdmitCreate, hasBody: true,
		schema: SchemaOfCreates, options: "CreateOptions",
	},
	VerbUpdate: {
		name: "update", methods: []string{"PUT"}, object: true, part: true, operation: AdmitUpdate, hasBody: true,
		options: "UpdateOptions",
	},
	VerbPatch: { // a patch that turns out to create the object has to be admitted as that
		name: "patch", methods: []string{"PATCH"}, object: true, part: true, operation: AdmitUpdate, hasBody: true,
		schema: SchemaOfPatches, options: "PatchOptions",
	},
	VerbDelete: {
		name: "delete", methods: []string{"DELETE"}, object: true, operation: AdmitDelete, options: "DeleteOptions",
	},
	VerbDeleteCollection: {
		name: "deletecollection", methods: []string{"DELETE"}, collection: true, operation: AdmitDelete, selects: true,
		options: "DeleteOptions",
	},
	VerbHead:    {name: "head", methods: []string{"HEAD"}, reads: true, isSafe: true},
	VerbPost:    {name: "post", methods: []string{"POST"}},
	VerbPut:     {name: "put", methods: []string{"PUT"}},
	VerbOptions: {name: "options", methods: []string{"OPTIONS"}, isSafe: true},
}

// An AdmissionOperation is an operation as admission policies name it, or a set of them.
type AdmissionOperation uint8

// The operations.
const (
	AdmitCreate AdmissionOperation = 1 << iota
	AdmitUpdate
	AdmitDelete
	AdmitConnect

	// AdmitAll are the operations that '*' means.
	AdmitAll = AdmitCreate | AdmitUpdate | AdmitDelete | AdmitConnect
)

// String returns the name in policies and in request.operation.
func (o AdmissionOperation) String() string {
	switch o {
	case AdmitCreate:
		return "CREATE"
	case AdmitUpdate:
		return "UPDATE"
	case AdmitDelete:
		return "DELETE"
	case AdmitConnect:
		return "CONNECT"
	}
	return "*"
}

// SchemaUse says which of the schemas of a resource describes an object. OpenAPI documents may have
// different ones.
type SchemaUse uint8

// The schemas: of objects that replace stored ones, that are created, that are made of a stored one
// and a patch, and that are read.
const (
	SchemaOfUpdates SchemaUse = iota
	SchemaOfCreates
	SchemaOfPatches
	SchemaOfReads
)

// String returns the name of the verb; "" for VerbOther.
func (v Verb) String() string { return verbs[v].name }

// Method returns the method that usually asks for the verb; "" for VerbOther.
func (v Verb) Method() string {
	if len(verbs[v].methods) == 0 {
		return ""
	}
	return verbs[v].methods[0]
}

// OfResource reports whether requests for resources can have the verb.
func (v Verb) OfResource() bool { return verbs[v].object || verbs[v].collection }

// OfObject reports whether a request of the verb addresses one object that may be stored.
func (v Verb) OfObject() bool { return verbs[v].object }

// OfCollection reports whether a request of the verb addresses the objects of a collection.
func (v Verb) OfCollection() bool { return verbs[v].collection }

// Operation returns what a request of the verb is admitted as; 0 if it changes nothing that is stored.
func (v Verb) Operation() AdmissionOperation { return verbs[v].operation }

// Reads reports whether the answer is what is stored, so that the request may be sent again.
func (v Verb) Reads() bool { return verbs[v].reads }

// IsSafe reports whether clients do not expect a request of the verb to change anything.
func (v Verb) IsSafe() bool { return verbs[v].isSafe }

// HasBody reports whether requests of the verb carry an object or a patch.
func (v Verb) HasBody() bool { return verbs[v].hasBody }

// Selects reports whether label and field selectors choose the objects of the request.
func (v Verb) Selects() bool { return verbs[v].selects }

// Lasts reports whether the answer goes on for as long as the client likes.
func (v Verb) Lasts() bool { return verbs[v].lasts }

// Schema returns which schema describes the objects that requests of the verb carry or ask for.
func (v Verb) Schema() SchemaUse { return verbs[v].schema }

// OptionsKind returns the kind of the options of a request, such as CreateOptions; "" for none.
func (v Verb) OptionsKind() string { return verbs[v].options }

// Documented returns the verb under which a document describes the requests of this one. A document
// does not describe a watch: it has the parameters of a list.
func (v Verb) Documented() Verb {
	if of := verbs[v].variant; of != VerbOther {
		return of
	}
	return v
}

// Verbs calls a function for each verb but VerbOther, in the order of the table, until it returns
// false.
func Verbs(yield func(Verb) bool) {
	for v := VerbOther + 1; v < NumVerbs; v++ {
		if !yield(v) {
			return
		}
	}
}

// VerbNamed returns the verb of a name, or VerbOther.
func VerbNamed(name string) Verb { return verbsByName[name] }

var verbsByName = func() map[string]Verb {
	named := map[string]Verb{}
	for v := range Verbs {
		named[v.String()] = v
	}
	return named
}()

// VerbOf returns the verb of a resource that a method is the usual one for, on a path that leads to
// an object or not; VerbOther if there is none. HEAD is no usual one.
func VerbOf(method string, ofObject bool) Verb {
	if v := methodOf(method).verb(ofObject); v.OfResource() && v.Method() == method {
		return v
	}
	return VerbOther
}

// VerbSet is a set of verbs.
type VerbSet uint32

// AllVerbs has every verb, VerbOther among them.
const AllVerbs VerbSet = 1<<NumVerbs - 1

// NewVerbSet returns the set of the named verbs. It is AllVerbs if there is no name or one is '*'.
func NewVerbSet(names ...string) (s VerbSet) {
	if len(names) == 0 {
		return AllVerbs
	}
	for _, name := range names {
		if name == "*" {
			return AllVerbs
		}
		if v := VerbNamed(name); v != VerbOther {
			s |= 1 << v
		}
	}
	return s
}

// Has reports whether a verb is in the set.
func (s VerbSet) Has(v Verb) bool { return s&(1<<v) != 0 }

// A method is an HTTP method that some verb has: its place among the methods.
type method uint8

// methodOther is any method that no verb has.
const methodOther method = 0

// methods are the names of the methods as the table of verbs has them, in the order in which the header
// Allow lists them. The first one is methodOther's.
var methods = func() []string {
	in := []string{""}
	for v := range Verbs {
		for _, name := range verbs[v].methods {
			if !slices.Contains(in, name) {
				in = append(in, name)
			}
		}
	}
	return in
}()

// The methods that the rules of paths name.
var (
	methodGet     = methodOf(http.MethodGet)
	methodHead    = methodOf(http.MethodHead)
	methodPost    = methodOf(http.MethodPost)
	methodPatch   = methodOf(http.MethodPatch)
	methodOptions = methodOf(http.MethodOptions)
)

func methodOf(name string) method {
	for m := 1; m < len(methods); m++ {
		if methods[m] == name {
			return method(m)
		}
	}
	return methodOther
}

// eachMethod calls a function for each method, in their order, until it returns false.
func eachMethod(yield func(method) bool) {
	for m := 1; m < len(methods); m++ {
		if !yield(method(m)) {
			return
		}
	}
}

// verbsOf has what a method asks for.
type verbsOf struct {
	// object and collection are the verbs on a resource, or VerbOther.
	object, collection Verb
	// path is the verb on a path that is no resource.
	path Verb
}

func (m method) verbs() verbsOf { return verbsOfMethods[m] }

var verbsOfMethods = func() []verbsOf {
	all := make([]verbsOf, len(methods))
	for v := range Verbs {
		row := &verbs[v]
		for _, name := range row.methods {
			of := &all[methodOf(name)]
			if row.object && row.variant == VerbOther && of.object == VerbOther {
				of.object = v
			}
			if row.collection && row.variant == VerbOther && of.collection == VerbOther {
				of.collection = v
			}
			if row.name == strings.ToLower(name) {
				of.path = v
			}
		}
	}
	return all
}()

// verb returns the verb that the method asks for of a resource. If it does not ask for that, this
// is its usual verb.
func (m method) verb(ofObject bool) Verb {
	of := verbsOfMethods[m]
	first, second := of.collection, of.object
	if ofObject {
		first, second = second, first
	}
	switch {
	case first != VerbOther:
		return first
	case second != VerbOther:
		return second
	}
	return of.path
}

// ofResources reports whether requests for resources have the method. OPTIONS is for every path.
func (m method) ofResources() bool {
	of := verbsOfMethods[m]
	return of.object != VerbOther || of.collection != VerbOther
}
