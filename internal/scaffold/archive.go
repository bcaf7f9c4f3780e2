package scaffold

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/recorded"
	"github.com/admission-gateway/gateway/policies/source"
)

const (
	// MaxArchive bounds an HTTP archive, in bytes.
	MaxArchive = 256 << 20
	// maxOperations bounds how many operations are described, maxRecorded how many requests of each are
	// tested.
	maxOperations, maxRecorded = 1000, 3
)

// ForArchive returns policy files for an API whose requests an HTTP archive has: an OpenAPI document of what was seen,
// and what ForDocument writes for one that has to be observed first. dir is the folder of policy files.
func ForArchive(name, dir string, data []byte) (*Policies, error) {
	entries, unusable, err := recorded.Archive(data)
	if err != nil {
		return nil, err
	}
	a := &archive{operations: map[string]*seenOperation{}}
	a.origin = mostFrequent(entries)
	a.count(entries, unusable)
	entries = slices.DeleteFunc(entries, func(r *recorded.Request) bool { return !isCall(r) || r.Origin != a.origin })
	names := namesIn(entries)
	for _, r := range entries {
		a.add(r, names)
	}
	for _, r := range entries {
		a.patch(r, names)
	}
	if len(a.operations) == 0 {
		return nil, errors.New("must have requests that an API answered with JSON, or that changed something there, and that succeeded")
	}
	text, err := a.document()
	if err != nil {
		return nil, err
	}
	base := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	d := &Document{Name: base + ".yaml", Dir: dir, IsOwn: true, recorded: a.requests()}
	d.Files = []source.File{{Name: filepath.Join(dir, d.Name), Data: text, Root: dir}}
	made, err := ForDocument(d)
	if err != nil {
		return nil, err
	}
	made.Files[d.Name] = text
	made.Upstream = a.origin
	made.Remarks = append(a.remarks, "The test has bodies and paths as they were recorded, but for what looks like a secret by its name: read it before you share it.")
	return made, nil
}

// An archive is what the entries of an HTTP archive say of one API.
type archive struct {
	origin     string
	operations map[string]*seenOperation // by method and path
	surveyor   surveyor
	calls      int
	remarks    []string
}

// A seenOperation is what was seen of a method at a path.
type seenOperation struct {
	method, path string // with variables
	count        int
	query        map[string]bool // whether a parameter was repeated, by its name
	bodies       map[string]*shape
	withBody     int
	answers      map[string]map[string]*shape // by code and media type
	requests     []request
}

// isCall reports whether a request succeeded, as far as the record says, and is one of an API: not of a page, a script
// or a picture.
func isCall(r *recorded.Request) bool {
	switch r.Method {
	case http.MethodGet:
		return r.Code < 400 && recorded.IsJSON(r.AnswerType)
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return r.Code < 400
	}
	return false
}

// mostFrequent returns the origin that most of the calls went to.
func mostFrequent(entries []*recorded.Request) (origin string) {
	counts := map[string]int{}
	for _, r := range entries {
		if isCall(r) {
			counts[r.Origin]++
		}
	}
	for _, one := range slices.Sorted(maps.Keys(counts)) {
		if origin == "" || counts[one] > counts[origin] {
			origin = one
		}
	}
	return origin
}

// count notes what of the archive is left out.
func (a *archive) count(entries []*recorded.Request, unusable int) {
	others, failed := map[string]int{}, 0
	for _, r := range entries {
		switch {
		case isCall(r) && r.Origin != a.origin:
			others[r.Origin]++
		case r.Origin == a.origin && r.Code >= 400:
			failed++
		}
	}
	names := slices.Sorted(maps.Keys(others))
	if len(names) > 5 {
		names = append(names[:5], fmt.Sprintf("and %d more", len(names)-5))
	}
	if len(names) > 0 {
		a.remarks = append(a.remarks, "Calls of other servers are left out: "+strings.Join(names, ", ")+".")
	}
	if failed > 0 {
		a.remarks = append(a.remarks,
			fmt.Sprintf("%d that the API did not carry out (400 and above) %s nothing of what it takes.", failed,
				say(failed, "says", "say")))
	}
	if unusable > 0 {
		a.remarks = append(a.remarks, fmt.Sprintf("%d that cannot be read %s left out.", unusable,
			say(unusable, "is", "are")))
	}
}

func say(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// idMembers are members that objects are often named by.
var idMembers = map[string]bool{
	"id": true, "_id": true, "uid": true, "uuid": true, "name": true, "key": true, "slug": true, "code": true,
	"number": true, "login": true,
	"username": true, "handle": true,
}

// isNaming reports whether an object may be named by a member.
func isNaming(member string) bool {
	return idMembers[strings.ToLower(member)] || strings.HasSuffix(member, "Id") || strings.HasSuffix(member, "ID") ||
		strings.HasSuffix(member, "_id")
}

// namesIn returns the paths whose last segment is the name of an object: an object that was sent or answered there, or
// in the collection above, says so.
func namesIn(entries []*recorded.Request) map[string]bool {
	paths := map[string]bool{}
	for _, r := range entries {
		for at, c := range r.Target {
			if c == '?' {
				break
			}
			if c == '/' && at > 0 {
				paths[r.Target[:at]] = true
			}
		}
		paths[pathOf(r.Target)] = true
	}
	names := map[string]bool{}
	note := func(path string, o document.Node) {
		for m := first(o, document.Object); m.Valid(); m = m.Next() {
			if !isNaming(m.Key()) {
				continue
			}
			var value string
			switch m.Kind() {
			case document.String:
				value = url.PathEscape(m.Str())
			case document.Number:
				value = string(m.AppendRaw(nil))
			}
			if value == "" {
				continue
			}
			if below := path + "/" + value; paths[below] {
				names[below] = true
			}
			if strings.HasSuffix(path, "/"+value) {
				names[path] = true
			}
		}
	}
	for _, r := range entries {
		path := pathOf(r.Target)
		for _, text := range [][]byte{r.Body, r.Answer} {
			parsed, err := document.Parse(text, archiveLimits)
			if err != nil {
				continue
			}
			root := parsed.Root()
			note(path, root)
			for n := first(root, document.Array); n.Valid(); n = n.Next() {
				note(path, n)
			}
			for m := first(root, document.Object); m.Valid(); m = m.Next() { // a list in an envelope
				note(path, m)
				for n := first(m, document.Array); n.Valid(); n = n.Next() {
					note(path, n)
				}
			}
			parsed.Release()
		}
	}
	return names
}

// archiveLimits are the limits of a body in an archive.
var archiveLimits = document.Limits{Bytes: MaxBytes, Nodes: MaxBytes, Depth: document.DefaultDepth}

// pathOf returns a target without its query, and without a slash at its end.
func pathOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return strings.TrimRight(path, "/")
}

// add adds a call.
func (a *archive) add(r *recorded.Request, names map[string]bool) {
	path, values := templateOf(r.Target, names)
	key := r.Method + " " + path
	o := a.operations[key]
	if o == nil {
		if len(a.operations) == maxOperations {
			return
		}
		o = &seenOperation{method: r.Method, path: path, query: map[string]bool{}, bodies: map[string]*shape{},
			answers: map[string]map[string]*shape{}}
		a.operations[key] = o
	}
	o.count++
	a.calls++
	one := request{method: r.Method, path: path, values: map[string]map[string]string{"path": values}}
	_, query, _ := strings.Cut(r.Target, "?")
	parameters, err := url.ParseQuery(query)
	if err == nil {
		for name, all := range parameters {
			o.query[name] = o.query[name] || len(all) > 1
			if !isSecret(name) && len(all) == 1 {
				one.set("query", name, all[0])
			}
		}
	}
	isUsable := true
	if len(r.Body) > 0 {
		o.withBody++
		one.media, isUsable = mediaOf(r.ContentType), false
		body := o.bodies[one.media]
		if body == nil {
			body = &shape{}
			o.bodies[one.media] = body
		}
		if recorded.IsJSON(one.media) && a.see(body, r.Body) {
			one.body, one.hasBody = masked(decoded(r.Body)), true
			isUsable = true
		}
	}
	if isUsable && len(o.requests) < maxRecorded {
		o.requests = append(o.requests, one)
	}
	code := "default"
	if r.Code >= 100 {
		code = strconv.Itoa(r.Code)
	}
	if o.answers[code] == nil {
		o.answers[code] = map[string]*shape{}
	}
	if media := mediaOf(r.AnswerType); r.Answer != nil && media != "" {
		answer := o.answers[code][media]
		if answer == nil {
			answer = &shape{}
			o.answers[code][media] = answer
		}
		a.see(answer, r.Answer)
	}
}

// patch adds what a patch changes to what an object may be: what results from it is judged as an object that is sent.
func (a *archive) patch(r *recorded.Request, names map[string]bool) {
	if r.Method != http.MethodPatch {
		return
	}
	path, _ := templateOf(r.Target, names)
	above := path[:strings.LastIndexByte(path, '/')]
	parsed, err := document.Parse(r.Body, archiveLimits)
	if err != nil {
		return
	}
	defer parsed.Release()
	for _, key := range []string{http.MethodPut + " " + path, http.MethodPost + " " + above} {
		if o := a.operations[key]; o != nil {
			for _, body := range o.bodies {
				a.surveyor.patch(body, parsed.Root())
			}
		}
	}
}

// see adds a JSON text to a shape. One that the gateway would not read leaves the shape open.
func (a *archive) see(to *shape, text []byte) bool {
	parsed, err := document.Parse(text, archiveLimits)
	if err != nil {
		to.isUnread = true
		return false
	}
	a.surveyor.add(to, parsed.Root())
	parsed.Release()
	return true
}

// mediaOf returns a media type without parameters.
func mediaOf(of string) string {
	media, _, _ := strings.Cut(of, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// decoded returns the value of a JSON text, with numbers as they are spelled.
func decoded(text []byte) (v any) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	_ = decoder.Decode(&v) // it was parsed before
	return v
}

// secrets are parts of the names of members and parameters that hold secrets.
var secrets = []string{"password", "passwd", "secret", "token", "apikey", "api_key", "api-key", "credential", "session",
	"signature", "authorization", "otp", "pin", "cvv", "cvc", "iban", "card"}

// isSecret reports whether a value is likely to be a secret by its name.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secrets, func(part string) bool {
		return name == part || len(part) > 4 && strings.Contains(name, part)
	})
}

// masked returns a value with other texts in the place of secrets.
func masked(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, m := range v {
			if _, isText := m.(string); isText && isSecret(name) {
				v[name] = "example"
			} else {
				v[name] = masked(m)
			}
		}
	case []any:
		for i := range v {
			v[i] = masked(v[i])
		}
	}
	return v
}

// templateOf returns the path of a target with variables in the place of identifiers, and their values.
func templateOf(target string, names map[string]bool) (path string, values map[string]string) {
	full, _, _ := strings.Cut(target, "?")
	values = map[string]string{}
	var made strings.Builder
	above, raw := "", ""
	for _, segment := range strings.Split(full, "/")[1:] {
		raw += "/" + segment
		plain, err := url.PathUnescape(segment)
		if err != nil || plain == segment && !isIdentifier(segment) && !names[raw] {
			made.WriteString("/" + segment)
			above = segment
			continue
		}
		name := variableOf(above)
		for n := 2; values[name] != ""; n++ {
			name = variableOf(above) + strconv.Itoa(n)
		}
		if isSecret(above) {
			plain = "example"
		}
		values[name] = plain
		made.WriteString("/{" + name + "}")
	}
	return made.String(), values
}

// variableOf returns the name of the variable below a segment: 'orderId' below 'orders'.
func variableOf(segment string) string {
	var made strings.Builder
	upper := false
	for _, c := range segment {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' && made.Len() > 0:
			if upper && made.Len() > 0 {
				c = unicode.ToUpper(c)
			}
			made.WriteRune(c)
			upper = false
		default:
			upper = true
		}
	}
	name := made.String()
	switch {
	case name == "":
		return "id"
	case strings.HasSuffix(name, "ies") && len(name) > 4:
		name = strings.TrimSuffix(name, "ies") + "y"
	case strings.HasSuffix(name, "s") && !strings.HasSuffix(name, "ss") && len(name) > 2:
		name = strings.TrimSuffix(name, "s")
	}
	return name + "Id"
}

// requests returns the calls that tests send, by method and path.
func (a *archive) requests() map[string][]request {
	all := map[string][]request{}
	for key, o := range a.operations {
		all[key] = o.requests
	}
	return all
}

// document returns the OpenAPI document of what was seen.
func (a *archive) document() ([]byte, error) {
	paths := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(a.operations)) {
		o := a.operations[key]
		item := object(paths[o.path])
		if item == nil {
			item = map[string]any{}
			paths[o.path] = item
			var parameters []any
			for part := range strings.SplitSeq(o.path, "/") {
				if strings.HasPrefix(part, "{") {
					parameters = append(parameters, map[string]any{"name": strings.Trim(part, "{}"), "in": "path",
						"required": true, "schema": map[string]any{"type": "string"}})
				}
			}
			if len(parameters) > 0 {
				item["parameters"] = parameters
			}
		}
		item[strings.ToLower(o.method)] = o.described()
	}
	title := "recorded calls"
	root := map[string]any{"openapi": "3.1.0", "paths": paths}
	if at, err := url.Parse(a.origin); err == nil && at.Host != "" {
		title = at.Host
		root["servers"] = []any{map[string]any{"url": a.origin}}
	}
	root["info"] = map[string]any{"title": title, "version": "recorded"}
	text, err := yaml.Marshal(root)
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf("# Made of %d recorded calls. The schemas are the union of what was seen, and require what all\n# objects had.\n", a.calls)
	return append([]byte(head), text...), nil
}

// described returns what the document says of an operation.
func (o *seenOperation) described() map[string]any {
	made := map[string]any{}
	var parameters []any
	for _, name := range slices.Sorted(maps.Keys(o.query)) {
		schema := map[string]any{"type": "string"}
		if o.query[name] {
			schema = map[string]any{"type": "array", "items": schema}
		}
		parameters = append(parameters, map[string]any{"name": name, "in": "query", "schema": schema})
	}
	if len(parameters) > 0 {
		made["parameters"] = parameters
	}
	isPatch := o.method == http.MethodPatch
	if len(o.bodies) > 0 {
		body := map[string]any{"content": contentOf(o.bodies, isPatch)}
		if o.withBody == o.count {
			body["required"] = true
		}
		made["requestBody"] = body
	}
	answers := map[string]any{}
	for code, bodies := range o.answers {
		answer := map[string]any{"description": cmp.Or(http.StatusText(codeOf(code)), "What was answered")}
		if len(bodies) > 0 {
			answer["content"] = contentOf(bodies, false)
		}
		answers[code] = answer
	}
	made["responses"] = answers
	return made
}

func codeOf(s string) int {
	code, _ := strconv.Atoi(s) // 0 for the answer by default
	return code
}

// contentOf returns what a document says of bodies, by their media types.
func contentOf(bodies map[string]*shape, isPatch bool) map[string]any {
	content := map[string]any{}
	for media, s := range bodies {
		said := map[string]any{}
		if schema := s.schema(isPatch); len(schema) > 0 {
			said["schema"] = schema
		}
		content[cmp.Or(media, "application/octet-stream")] = said
	}
	return content
}
