package openapi

import (
	"regexp"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
)

// A shape says for each keyword of one kind of object in a document how it is handled. Keywords
// that it lacks are named, so that nothing of a document is left out without a word.
type shape struct {
	keywords map[string]keyword
	// others is for members whose names are the author's own; nil if there are none.
	others *keyword
}

// A keyword is known to the gateway. Its value is looked at by another part of this package if there is neither a shape
// nor a reason.
type keyword struct {
	of   *shape        // of the value, or of each item of a list
	is   document.Kind // of the value; Invalid: any
	why  string        // it is not enforced; empty if it is
	mild bool          // documents say so at every turn, and few authors mean it for a gateway
}

var (
	seen  = keyword{}
	noted = map[string]keyword{"description": seen, "summary": seen, "externalDocs": seen, "deprecated": seen,
		"example": seen, "examples": seen}
	beyond = func(why string) keyword { return keyword{why: why} }

	truths = keyword{is: document.Bool}
	texts  = keyword{is: document.String}
)

// The kinds of objects, from the leaves up.
var (
	schemaShape = &shape{} // its keywords are read by walkSchema
	schemas     = keyword{of: schemaShape}

	encodingShape = shapeOfObject(nil, map[string]keyword{
		"contentType": texts, "style": texts, "explode": truths,
		"headers":       beyond("headers of parts are not enforced"),
		"allowReserved": beyond("reserved characters pass, encoded or not"),
	})
	mediaShape = shapeOfObject(nil, map[string]keyword{
		"schema": schemas, "encoding": objects(mapOf(encodingShape)),
		"itemSchema":     beyond("the gateway does not read the items of a sequence"),
		"prefixEncoding": beyond(partsByPlace), "itemEncoding": beyond(partsByPlace),
	})
	parameterShape = shapeOfObject(nil, map[string]keyword{
		"name": texts, "in": texts, "required": truths, "style": texts, "explode": truths, "allowEmptyValue": truths,
		"schema": schemas, "content": objects(mapOf(mediaShape)),
		"allowReserved": beyond("reserved characters pass, encoded or not"),
	})
	bodyShape     = shapeOfObject(nil, map[string]keyword{"required": truths, "content": objects(mapOf(mediaShape))})
	responseShape = shapeOfObject(nil, map[string]keyword{
		"content": {why: answersPass, mild: true}, "headers": {why: answersPass, mild: true},
		"links": beyond("links are not followed"),
	})
	// Answers that are checked against the document.
	answerContentShape = shapeOfObject(nil, map[string]keyword{
		"schema": schemas, "itemSchema": {why: "the gateway does not read the items of a sequence", mild: true},
	})
	headerShape = shapeOfObject(nil, map[string]keyword{
		"required": truths, "style": texts, "explode": truths, "schema": schemas, "content": objects(mapOf(mediaShape)),
	})
	watchedResponseShape = shapeOfObject(nil, map[string]keyword{
		"content": {of: mapOf(answerContentShape)}, "headers": {of: mapOf(headerShape)},
		"links": beyond("links are not followed"),
	})
	watchedResponses = keyword{of: mapOf(watchedResponseShape)}
	operationShape   = shapeOfObject(nil, map[string]keyword{
		"tags": seen, "operationId": seen, "security": lists(nil), "servers": seen, OperationExtension: seen,
		"parameters": lists(parameterShape), "requestBody": objects(bodyShape),
		"responses": objects(mapOf(responseShape)),
		"callbacks": beyond("callbacks go from the API to its clients: the gateway does not see them"),
	})
	pathShape = shapeOfObject(nil, map[string]keyword{
		"servers": seen, "parameters": lists(parameterShape),
		"get": objects(operationShape), "put": objects(operationShape), "post": objects(operationShape),
		"delete": objects(operationShape),
		"head":   objects(operationShape), "patch": objects(operationShape),
		queryMethod: objects(operationShape), moreMethods: objects(mapOf(operationShape)),
		"options": beyond("browsers ask by it before they send another request, so that it passes always"),
		"trace":   beyond("TRACE is refused: no server behind a gateway can answer it truly"),
	})
	rootShape = shapeOfObject(nil, map[string]keyword{
		"$self":   beyond("a reference counts from the file that it is in, and no reference leads to a URL"),
		"openapi": seen, swaggerKey: seen, "info": seen,
		"jsonSchemaDialect": beyond("schemas are read in the dialect of OpenAPI"), "servers": seen,
		"security": lists(nil), "tags": seen,
		"components": seen, // read from where it is referred to
		"paths":      objects(mapOf(pathShape)),
		"webhooks":   beyond("webhooks go from the API to its clients: the gateway does not see them"),
	})
)

// objects are for an object of a shape, lists for a list of objects of a shape.
func objects(of *shape) keyword { return keyword{of: of, is: document.Object} }
func lists(of *shape) keyword   { return keyword{of: of, is: document.Array} }

const partsByPlace = "the gateway reads the parts of a form by their names"

const answersPass = "answers pass as they come, whatever their codes, headers and bodies"

// shapeOfObject returns the shape of an object with these keywords, besides the ones that only
// describe.
func shapeOfObject(others *keyword, keywords map[string]keyword) *shape {
	s := &shape{keywords: map[string]keyword{}, others: others}
	for name, k := range noted {
		s.keywords[name] = k
	}
	for name, k := range keywords {
		s.keywords[name] = k
	}
	return s
}

// mapOf returns the shape of an object whose members the author names.
func mapOf(of *shape) *shape { return &shape{others: &keyword{of: of}} }

// Overlooked names what a document says and the gateway does not enforce, in all that its paths
// lead to, once Resources has found the resources. What that reports is not named again. Mild
// findings name what nearly every document has.
func Overlooked(d *Document) (found, mild []Finding) {
	w := &walker{
		watchesAll: watchesAll(d), doc: d, report: newReport(), mild: d.mild, done: map[visit]bool{},
		isServer: d.isKubernetes(),
	}
	w.object(d.root, rootShape)
	return w.report.findings(), w.mild.findings()
}

// A walker looks at each object of a document once for each shape.
type walker struct {
	doc          *Document
	report, mild *report
	done         map[visit]bool
	isServer     bool // the document is one of an API server
	watchesAll   bool // the answers of all operations are checked against the document
}

// watchesAll reports whether the answers of all operations are checked against the document.
func watchesAll(d *Document) bool {
	for _, p := range d.paths() {
		for _, method := range p.named() {
			if operation := p.operation(method); operation.Valid() && !d.watched[operation.Index()] {
				return false
			}
		}
	}
	return true
}

type visit struct {
	node uint32
	of   *shape
}

// object looks at an object, or at each of a list.
func (w *walker) object(n document.Node, of *shape) {
	if n.Kind() == document.Array {
		members(n, func(item document.Node) { w.object(item, of) })
		return
	}
	for range maxRefs { // references that cannot be followed are reported elsewhere
		ref, found := n.Get("$ref")
		if !found || of == schemaShape || ref.Kind() != document.String {
			break
		}
		to, err := w.doc.resolve(ref.Str())
		if err != nil {
			return
		}
		n = to
	}
	if n.Kind() != document.Object || w.done[visit{n.Index(), of}] {
		return
	}
	w.done[visit{n.Index(), of}] = true
	if of == parameterShape && text(n, "in") == "path" && !truth(n, "required") {
		w.report.warn(n, "must have `required: true`: a value in the path is always there")
	}
	if name, _ := n.Get("name"); of == parameterShape && text(n, "in") == "header" && !isToken.MatchString(name.Str()) {
		w.report.refuse(name, "must be the name of a header, which has no spaces and none of ()<>@,;:\\\"/[]?={}")
	}
	if of == schemaShape {
		w.schema(n)
		return
	}
	members(n, func(m document.Node) { w.member(m, of) })
}

// member looks at a member of an object.
func (w *walker) member(m document.Node, of *shape) {
	name := m.Key()
	k, known := of.keywords[name]
	if !known && of.others != nil {
		k, known = *of.others, true
	}
	if of == operationShape && name == "responses" && w.doc.watched[m.Parent().Index()] {
		k = watchedResponses
	}
	switch {
	case strings.HasPrefix(name, "x-"):
	case (name == "parameters" || name == "security" || name == "options") && w.isServer &&
		(of == pathShape || of == operationShape || of == rootShape):
		// kubernetesOperations has looked at them, and an API server reads the rest itself.
	case !known:
		w.report.warn(m, "the keyword '%.80s' is not enforced", name)
	case k.is != document.Invalid && m.Kind() != k.is && m.Kind() != document.Null:
		w.report.refuse(m, "must be %s, not %s", k.is.WithArticle(), m.Kind().WithArticle())
	case k.mild && m.Len() > 0:
		w.mild.warn(m, "is not enforced: %s", k.why)
	case k.why != "" && (m.Len() > 0 || m.Kind() != document.Object && m.Kind() != document.Array):
		w.report.gap(m, "is not enforced: %s", k.why)
	case k.of != nil:
		w.undeclared(m, of)
		w.codes(m, of)
		w.media(m, k.of)
		w.unread(m, k.of)
		w.object(m, k.of)
	}
}

// undeclared names an operation that says nothing of its body.
func (w *walker) undeclared(m document.Node, of *shape) {
	name := m.Key()
	if _, found := m.Get("requestBody"); of == pathShape && (name == "post" || name == "put") && !found && !w.isServer {
		w.mild.warn(m, "says nothing of its body: what is no JSON passes without being read")
	}
}

// codes finds answers by what no status code is.
func (w *walker) codes(m document.Node, of *shape) {
	if of != operationShape || m.Key() != "responses" {
		return
	}
	members(m, func(answer document.Node) {
		name := answer.Key()
		if _, isCode := codeOf(name); !isCode && !strings.HasPrefix(name, "x-") {
			w.report.refuse(answer, "must be a status code, such as '200' or '2XX', or 'default'%s",
				manifest.Suggest(name, slices.Values([]string{"default"})))
		}
	})
}

// media finds bodies of what no media type is, or a range of media types.
func (w *walker) media(m document.Node, of *shape) {
	if of.others == nil || of.others.of != mediaShape {
		return
	}
	members(m, func(body document.Node) {
		kind, subtype, _ := strings.Cut(mediaName(body), "/")
		if !isToken.MatchString(kind) || !isToken.MatchString(subtype) {
			w.report.warn(body, "must be a media type, such as 'application/json', or a range, such as 'text/*'")
		}
	})
}

// isToken matches a token of HTTP, as in names of headers and media types.
var isToken = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// unread names the media types of answers whose schemas are not enforced.
func (w *walker) unread(m document.Node, of *shape) {
	schema, found := m.Get("schema")
	if name := mediaName(m); of == answerContentShape && found && !isJSONType(name) && !strings.Contains(name, "*") {
		w.mild.warn(schema, "is not enforced in answers: the gateway reads their JSON alone")
	}
}

// foreignKeywords of schemas say something of another language than JSON.
var foreignKeywords = map[string]string{
	"xml":              "the gateway reads no XML",
	"contentSchema":    "the gateway does not look into texts",
	"contentEncoding":  "the gateway does not look into texts",
	"contentMediaType": "the gateway does not look into texts, and takes it for the type of a file in forms alone",
}

// isIdentity reports whether a contentEncoding leaves the bytes as they are (RFC 2045), so that there is no rule to
// enforce.
func isIdentity(encoding document.Node) bool {
	return slices.ContainsFunc([]string{"7bit", "8bit", "binary"},
		func(name string) bool { return strings.EqualFold(encoding.Str(), name) })
}

// schema looks at the keywords that translations take for mere notes, in a schema and everything within it.
func (w *walker) schema(n document.Node) {
	if ref, found := n.Get("$ref"); found && ref.Kind() == document.String {
		if to, err := w.doc.resolve(ref.Str()); err == nil {
			w.object(to, schemaShape)
		}
	}
	members(n, func(m document.Node) {
		switch name := m.Key(); name {
		case "contentEncoding":
			if !isIdentity(m) {
				w.report.gap(m, "is not enforced: %s", foreignKeywords[name])
			}
		case "contentMediaType":
			if !isAnyMedia(m) {
				w.report.gap(m, "is not enforced: %s", foreignKeywords[name])
			}
		case "xml", "contentSchema":
			w.report.gap(m, "is not enforced: %s", foreignKeywords[name])
		case "writeOnly":
			if m.Bool() && !w.watchesAll {
				w.mild.warn(m, "is not enforced in answers: they pass as they come")
			}
		case "required":
			w.supplied(n, m)
		case "enum":
			hasNull := false
			members(m, func(v document.Node) { hasNull = hasNull || v.Kind() == document.Null })
			if truth(n, "nullable") && !hasNull {
				w.mild.warn(m, "is not enforced of null, which `nullable` lets be")
			}
		case "properties", "patternProperties", "dependentSchemas":
			members(m, func(property document.Node) { w.object(property, schemaShape) })
		case "items", "prefixItems", "contains", "unevaluatedItems", "additionalProperties", "propertyNames",
			"unevaluatedProperties",
			"not", "allOf", "anyOf", "oneOf", "if", "then", "else":
			w.object(m, schemaShape)
		}
	})
}

// supplied names the members that a schema requires, and that are filled in where a request leaves them out.
func (w *walker) supplied(schema, required document.Node) {
	properties, _ := schema.Get("properties")
	var names []string
	members(required, func(item document.Node) {
		property, _ := properties.Get(textOf(item))
		if value, found := w.doc.follow(property).Get("default"); found && w.doc.filled[value.Index()] {
			names = append(names, "'"+textOf(item)+"'")
		}
	})
	if len(names) > 0 {
		w.mild.warn(required, "is not enforced of %s, whose default is filled in", strings.Join(names, ", "))
	}
}
