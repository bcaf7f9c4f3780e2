package contract_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
)

// compiled compiles a schema in YAML.
func compiled(t testing.TB, text string) *schema.Schema {
	t.Helper()
	var props apiextensionsv1.JSONSchemaProps
	if err := yaml.Unmarshal([]byte(text), &props); err != nil {
		t.Fatal(err)
	}
	s, _, errs := schema.Compile(&props, schema.Options{})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return s
}

// parsed parses JSON.
func parsed(t testing.TB, text string) document.Node {
	t.Helper()
	d, err := document.Parse([]byte(text), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Release)
	return d.Root()
}

func noFrame() *cel.Frame { panic("a frame without rules") }

func texts(errs field.ErrorList) string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return strings.Join(all, "; ")
}

// TestOf: each request has the operation of its verb; at the paths of an API server also of its subresource and scope.
func TestOf(t *testing.T) {
	var c contract.Contract
	get, patch, list, status := &contract.Operation{MayBeEmpty: true},
		&contract.Operation{Answers: []contract.Answer{{}}}, &contract.Operation{}, &contract.Operation{}
	c.Set(resource.VerbGet, get)
	if c.HasAnswers() {
		t.Error("answers are checked")
	}
	c.Set(resource.VerbPatch, patch)
	c.Set(resource.VerbOther, status)
	c.SetAt(contract.Target{Verb: resource.VerbList, IsNamespaced: true}, list)
	c.SetAt(contract.Target{Verb: resource.VerbGet, Subresource: "status"}, status)
	if !c.HasAnswers() || (*contract.Contract)(nil).HasAnswers() {
		t.Error("whether answers are checked")
	}
	for _, test := range []struct {
		of   *resource.Info
		want *contract.Operation
	}{
		{&resource.Info{Verb: resource.VerbGet}, get}, {&resource.Info{Verb: resource.VerbPatch}, patch},
		{&resource.Info{Verb: resource.VerbList}, nil},
		{&resource.Info{Verb: resource.VerbList, APIPrefix: "api", IsResource: true, Namespace: "a"}, list},
		{&resource.Info{Verb: resource.VerbList, APIPrefix: "api", IsResource: true}, nil},
		{&resource.Info{Verb: resource.VerbGet, APIPrefix: "api", IsResource: true, Subresource: "status"}, status},
		{&resource.Info{Verb: resource.VerbGet, APIPrefix: "api", IsResource: true}, nil},
	} {
		if got := c.Of(test.of); got != test.want {
			t.Errorf("%+v has %p, want %p", test.of, got, test.want)
		}
	}
	if (*contract.Contract)(nil).Of(&resource.Info{}) != nil {
		t.Error("no contract has an operation")
	}
}

// TestPlaces: places have the names that documents use.
func TestPlaces(t *testing.T) {
	for _, name := range []string{"path", "query", "header", "cookie"} {
		if p, ok := contract.PlaceNamed(name); !ok || p.String() != name {
			t.Errorf("%s is %v", name, p)
		}
	}
	for _, name := range []string{"body", "", "formData"} {
		if p, ok := contract.PlaceNamed(name); ok {
			t.Errorf("%s is %v", name, p)
		}
	}
}

// TestMediaTypes: a type goes before a range, and a longer range before a shorter one.
func TestMediaTypes(t *testing.T) {
	o := &contract.Operation{Bodies: []contract.Body{
		{Media: "*/*"}, {Media: "application/*"}, {Media: "application/*+json"}, {Media: "application/json"},
		{Media: "image/*"},
		{Media: "multipart/form-data", Form: &contract.Form{}},
		{Media: "application/x-www-form-urlencoded", Form: &contract.Form{}},
	}}
	for media, want := range map[string]string{
		"application/json": "application/json", "application/merge-patch+json": "application/*+json",
		"application/xml": "application/*", "image/png": "image/*",
		"image/": "*/*", "text/plain": "*/*", "application/+json": "application/*",
		"application/x-www-form-urlencoded": "application/x-www-form-urlencoded",
	} {
		if got := o.BodyOf(media); got == nil || got.Media != want {
			t.Errorf("%s is read as %+v, want %s", media, got, want)
		}
	}
	o.Bodies = o.Bodies[3:]
	if got := o.BodyOf("text/plain"); got != nil {
		t.Errorf("text/plain is read as %s", got.Media)
	}
	if got, want := o.Accepted(), "application/json, image/*, multipart/form-data, application/x-www-form-urlencoded"; got != want {
		t.Errorf("accepted are %s, want %s", got, want)
	}
	if got, want := o.Forms(), "multipart/form-data, application/x-www-form-urlencoded"; got != want {
		t.Errorf("forms are %s, want %s", got, want)
	}
	if got := (&contract.Operation{}).Forms(); got != "" {
		t.Errorf("forms are %q", got)
	}
	if got := (*contract.Body)(nil).SchemaOf(); got != nil || (*contract.Body)(nil).IsDescribed() ||
		(&contract.Body{}).IsDescribed() {
		t.Errorf("the schema of nothing is %v", got)
	}
	if s := compiled(t, "type: object"); (&contract.Body{Schema: s}).SchemaOf() != s ||
		!(&contract.Body{Schema: s}).IsDescribed() {
		t.Error("a described body is not")
	}
	named := &contract.Operation{Underscored: []string{"X_Trace"}}
	if !named.HasHeader([]byte("x_trace")) || named.HasHeader([]byte("x_other")) {
		t.Error("declared headers with '_' are others")
	}
}

// TestNames: names of parameters are percent-decoded like their values, and no other name is taken for one.
func TestNames(t *testing.T) {
	o := &contract.Operation{
		Parameters: []contract.Parameter{
			{In: contract.InQuery, Name: "a b", Types: []contract.Type{contract.Integer}, IsRequired: true},
			{In: contract.InQuery, Name: "t", Types: []contract.Type{contract.Boolean, contract.String},
				Shape:     contract.List,
				Separator: "|"},
			{In: contract.InHeader, Name: "X-A", Types: []contract.Type{contract.Number}, IsRequired: true,
				MayBeEmpty: true},
			{In: contract.InCookie, Name: "c", Types: []contract.Type{contract.Number, contract.Boolean}},
		},
		Values: compiled(t,
			"{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {query: {type: object, properties: {'a b': {type: integer, maximum: 5}}}}}"),
	}
	const missing, noHeader = "query.a b: Required value", "header.X-A: Required value"
	for _, test := range []struct {
		query string
		lines []string
		want  string
	}{
		{"a%20b=1", []string{"X-A: 1"}, ""}, {"a+b=1", []string{"x-a:  -1.5E+3 "}, ""},
		{"%61%20%62=%31", []string{"X-A: 0.5"}, ""}, {"a b=1", []string{"X-A: 1e9"}, ""},
		{"a%20b=6", []string{"X-A: 1"}, "query.a b: Invalid value: 6: must be less than or equal to 5"},
		{"a%2=1", []string{"X-A: 1"}, missing}, {"a%zzb=1", []string{"X-A: 1"}, missing},
		{"a-b=1&ab=1", []string{"X-A: 1"}, missing}, {"A+b=1", []string{"X-A: 1"}, missing},
		{"a+b=1&a%20b=2", []string{"X-A: 1"}, `query.a b: Invalid value: "1": must be given once`},
		{"a+b=%2B1", []string{"X-A: 1"}, `query.a b: Invalid value: "+1": must be an integer`},
		{"a+b=1%", []string{"X-A: 1"}, `query.a b: Invalid value: "1%": must be an integer`},
		{"a+b=-", []string{"X-A: 1"}, `query.a b: Invalid value: "-": must be an integer`},
		{"a+b=-01", []string{"X-A: 1"}, `query.a b: Invalid value: "-01": must be an integer`},
		{"a+b=0", []string{"X-A: 1"}, ""}, {"a+b=-9223372036854775808", []string{"X-A: 1"}, ""},
		{"a+b=-9223372036854775809", []string{"X-A: 1"},
			`query.a b: Invalid value: "-9223372036854775809": must be an integer`},
		{"a+b", []string{"X-A: 1"}, `query.a b: Invalid value: "": must be an integer`},
		{"&&a+b=1&", []string{"X-A: 1"}, ""},
		{"a+b=1", nil, noHeader}, {"a+b=1", []string{"X-A: "}, noHeader}, {"a+b=1", []string{"X-AB: 1"}, noHeader},
		{"a+b=1", []string{"X-A: 1."}, `header.X-A: Invalid value: "1.": must be a number`},
		{"a+b=1", []string{"X-A: .5"}, `header.X-A: Invalid value: ".5": must be a number`},
		{"a+b=1", []string{"X-A: 00"}, `header.X-A: Invalid value: "00": must be a number`},
		{"a+b=1", []string{"X-A: 1e"}, `header.X-A: Invalid value: "1e": must be a number`},
		{"a+b=1", []string{"X-A: 1e+"}, `header.X-A: Invalid value: "1e+": must be a number`},
		{"a+b=1", []string{"X-A: 1x"}, `header.X-A: Invalid value: "1x": must be a number`},
		{"a+b=1", []string{"X-A: 1e5x"}, `header.X-A: Invalid value: "1e5x": must be a number`},
		{"a+b=1", []string{"X-A: 1%35"}, `header.X-A: Invalid value: "1%35": must be a number`},
		{"a+b=1", []string{"X-A: 1", "Cookie: d=1; c=true;c2=x"}, ""},
		{"a+b=1", []string{"X-A: 1", "Cookie: c=%31"}, ""},
		{"a+b=1", []string{"X-A: 1", "Cookie: c=yes"},
			`cookie.c: Invalid value: "yes": must be a number or 'true' or 'false'`},
		{"a+b=1&t=true|b%7Cc%7cd", []string{"X-A: 1"}, ""}, {"a+b=1&t=a%FF|b|%C3", []string{"X-A: 1"},
			"query.t[0]: Invalid value: \"a\uFFFD\": must be 'true' or 'false' or text in UTF-8; query.t[2]: Invalid value: \"\uFFFD\": must be 'true' or 'false' or text in UTF-8"},
	} {
		i, head := &resource.Info{Path: "/x", Query: test.query}, &message.Head{}
		text := "GET /x HTTP/1.1\r\nHost: a\r\n"
		for _, l := range test.lines {
			text += l + "\r\n"
		}
		if err := head.Parse([]byte(text+"\r\n"), &message.Options{}); err != nil {
			t.Fatal(err)
		}
		if got := texts(o.Check(i, head, noFrame)); got != test.want {
			t.Errorf("%s %v: got\n%s\nwant\n%s", test.query, test.lines, got, test.want)
		}
	}
}

// TestBounds: of many failures and members some are kept.
func TestBounds(t *testing.T) {
	list := contract.Parameter{In: contract.InQuery, Name: "n", Types: []contract.Type{contract.Integer},
		Shape: contract.List, Separator: ","}
	object := contract.Parameter{In: contract.InQuery, Name: "o", Shape: contract.Object, Keys: contract.KeysDeep,
		Separator: ","}
	joined := contract.Parameter{In: contract.InQuery, Name: "j", Shape: contract.Object, Keys: contract.KeysAssigned,
		Separator: ","}
	deep := contract.Parameter{In: contract.InQuery, Name: "d", Shape: contract.JSON}
	o := &contract.Operation{Parameters: []contract.Parameter{list, object, joined, deep}}
	members := func(n int, form string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, form, i)
		}
		return b.String()
	}
	for name, test := range map[string]struct {
		query string
		n     int
		first string
	}{
		"failures": {"n=" + strings.Repeat("x,", 400) + "x", 256,
			`query.n[0]: Invalid value: "x": must be an integer`},
		"members":      {members(256, "&o[%d]=1"), 0, ""},
		"many members": {members(257, "&o[%d]=1"), 1, `query.o: Invalid value: "256": must not have so many members`},
		"joined":       {"j=x=1" + members(255, ",%d=1"), 0, ""},
		"many joined":  {"j=x=1" + members(256, ",%d=1"), 1, `query.j.255: Invalid value: "1": must be given once`},
		"depth":        {"d=" + strings.Repeat("[", 32) + strings.Repeat("]", 32), 0, ""},
		"much depth":   {"d=" + strings.Repeat("[", 33) + strings.Repeat("]", 33), 1, "query.d: Invalid value: "},
		"no name": {"o[]=1", 1,
			`query.o: Invalid value: "o[]": must have members with names, and no objects within them`},
		"not closed": {"o[a=1", 1,
			`query.o: Invalid value: "o[[a]": must have members with names, and no objects within them`},
		"a member twice":  {"o[a]=1&o[a]=2", 1, `query.o.a: Invalid value: "1": must be given once`},
		"no value":        {"j=a", 1, `query.j: Invalid value: "a": must have a value for each member, such as name=value`},
		"the same joined": {"j=a=1,a=2", 1, `query.j.a: Invalid value: "2": must be given once`},
	} {
		got := o.Check(&resource.Info{Query: strings.TrimPrefix(test.query, "&")}, &message.Head{}, noFrame)
		if len(got) != test.n || test.n > 0 && !strings.HasPrefix(got[0].Error(), test.first) {
			t.Errorf("%s: %d failures, want %d: %.200s", name, len(got), test.n, texts(got))
		}
	}
}

// TestFields: a form in either encoding is read into the object of its fields; what is not allowed or is not read in
// one way only is refused.
func TestFields(t *testing.T) {
	text, number := []contract.Type{contract.String}, []contract.Type{contract.Integer}
	form := &contract.Form{
		Fields: []contract.Parameter{
			{In: contract.InBody, Name: "s", Types: text, IsRequired: true},
			{In: contract.InBody, Name: "n", Types: number, Shape: contract.List},
			{In: contract.InBody, Name: "f", Types: text}, {In: contract.InBody, Name: "o", Shape: contract.Object,
				Keys: contract.KeysDeep},
			{In: contract.InBody, Name: "j", Shape: contract.JSON},
		},
		Parts: []contract.Part{{}, {}, {IsFile: true, MinBytes: 2, MaxBytes: 4, Media: []string{"image/*", "text/css"}},
			{},
			{Media: []string{"application/json"}}},
	}
	open := *form
	open.Others = &contract.Parameter{Types: number}
	lists := *form
	lists.Others = &contract.Parameter{Types: text, Shape: contract.List}
	for _, test := range []struct {
		form       *contract.Form
		body, want string
	}{
		{form, "s=a+b%21&n=1&n=2&o[k]=v&j=%7B%22x%22:1%7D", `{"s":"a b!","n":[1,2],"o":{"k":"v"},"j":{"x":1}}`},
		{form, "s=", `{"s":""}`}, {form, "&s=a&&", `{"s":"a"}`}, {form, "s", `{"s":""}`},
		{form, "", `{} s: Required value`}, {form, "s=a&x=1&x=2",
			`{"s":"a"} x: Forbidden: must not be set: the form has no such field`},
		{form, "s=a&=1", `{"s":"a"} "": Forbidden: must not be set: the form has no such field`},
		{form, "s=a&n=x", `{"s":"a"} n[0]: Invalid value: "x": must be an integer`},
		{form, "s=a&s=b", `{} s: Invalid value: "a": must be given once`},
		{&open, "s=a&x=1&y=2", `{"s":"a","x":1,"y":2}`},
		{&open, "s=a&x=1&x=2", `{"s":"a"} x: Invalid value: "2": must be given once`},
		{&open, "s=a&x=z&y=2", `{"s":"a","y":2} x: Invalid value: "z": must be an integer`},
		{&lists, "s=a&x=1&y=2&x=3", `{"s":"a","x":["1","3"],"y":["2"]}`},
		{form, "s=%4", "error: a '%' must be followed by two hexadecimal digits, and ';' must be written as %3B"},
		{form, "s=%4g", "error: a '%' must be"}, {form, "s=a;b", "error: a '%' must be"},
		{form, "s=%g4", "error: a '%' must be"}, {form, "s=%41", `{"s":"A"}`},
		{form, "s=" + strings.Repeat("a&n=1&", 1) + strings.Repeat("n=1&", 10_000),
			"error: must have at most 10000 fields"},
	} {
		json, failures, err := test.form.ReadFields([]byte(test.body))
		check(t, test.body, json, failures, err, test.want)
	}
	part := func(head, content string) string {
		return "--b\r\nContent-Disposition: form-data; " + head + "\r\n\r\n" + content + "\r\n"
	}
	const end = "--b--\r\n"
	s := part(`name="s"`, "a%41+")
	const delimited, header, disposition = "error: the parts must begin and end",
		"error: each part must have its headers", "error: each part must have a header 'Content-Disposition"
	const encoded, value = "error: no part may have a Content-Transfer-Encoding", `{"s":"a%41+"} `
	for _, test := range []struct {
		form       *contract.Form
		body, want string
	}{
		{form, s + end, `{"s":"a%41+"}`}, {form, s + "--b--", `{"s":"a%41+"}`}, {form, end, `{} s: Required value`},
		{form, s, delimited}, {form, "x" + s + end, delimited}, {form, s + end + "x", delimited},
		{form, s + part(`name="n"`, "1") + part(`name="n"`, "2") + part(`name="o[k]"`, "v") + end,
			`{"s":"a%41+","n":[1,2],"o":{"k":"v"}}`},
		{form, s + part("name=\"f\"; filename=\"a.png\"\r\nContent-Type: Image/PNG", "1234") + end,
			`{"s":"a%41+","f":"a.png"}`},
		{form, s + part("name=\"f\"; filename=\"a.css\"\r\nContent-Type: text/css; charset=latin-1", "12") + end,
			`{"s":"a%41+","f":"a.css"}`},
		{form, s + part("name=\"f\"; filename=\"a.css\"\r\nContent-Type: text/plain", "12") + end,
			value + `f: Invalid value: "a.css": must have one of the media types image/*, text/css`},
		{form, s + part(`name="f"; filename="a.css"`, "12") + end,
			value + `f: Invalid value: "a.css": must have one of the media types image/*, text/css`},
		{form, s + part("name=\"f\"; filename=\"a.png\"\r\nContent-Type: image/png", "1") + end,
			value + `f: Invalid value: "a.png": must be larger: the file has too few bytes`},
		{form, s + part("name=\"f\"; filename=\"a.png\"\r\nContent-Type: image/png", "12345") + end,
			value + `f: Invalid value: "a.png": must be smaller: the file has too many bytes`},
		{form, s + part(`name="f"; filename=""`, "") + end, `{"s":"a%41+"}`},
		{form, s + part(`name="f"`, "") + end, `{"s":"a%41+"}`},
		{form, s + part(`name="f"; filename=""`, "1") + end, value + "f: Invalid value: \"\": must be larger"},
		{form, part(`name="s"; filename="x"`, "a") + end,
			`{} s: Invalid value: "": must be a value, and not a file; s: Required value`},
		{form, s + part("name=\"j\"\r\nContent-Type: application/json", `{"x":1}`) + end, `{"s":"a%41+","j":{"x":1}}`},
		{form, s + part(`name="j"`, `[1]`) + end, `{"s":"a%41+","j":[1]}`},
		{form, s + part("name=\"j\"\r\nContent-Type: text/plain", `{"x":1}`) + end,
			value + `j: Invalid value: "": must have one of the media types application/json`},
		{form, s + part(`name="x"; filename="y"`, "1") + end,
			value + "x: Forbidden: must not be set: the form has no such field"},
		{&lists, s + part(`name="x"; filename="y"`, "1") + end, `{"s":"a%41+","x":["y"]}`},
		{form, part(`name="s"`, "a\r\n--c") + end, `{"s":"a\r\n--c"}`},
		{form, part(`name="s"`, "a--b") + end, delimited},
		{form, "--b\r\nContent-Disposition: form-data; name=\"s\"\r\n", header},
		{form, part("name=\"s\"\r\nX-Other: é", "a") + end, `{"s":"a"}`},
		{form, part("name=\"s\"\r\nX-Other \xff: a", "a") + end, header},
		{form, part("name=\"s\"\r\nX-Other: \xff", "a") + end, header},
		{form, part("name=\"s\"\r\nX_9-z: \x01", "a") + end, header},
		{form, part("name=\"s\"\r\nX_9-z:\tb", "a") + end, `{"s":"a"}`},
		{form, part("name=\"s\"\r\n: a", "a") + end, header}, {form, part("name=\"s\"\r\nnone", "a") + end, header},
		{form, part("name=\"s\"\r\nContent-Disposition: form-data; name=\"n\"", "a") + end, header},
		{form, part("name=\"s\"\r\nContent-Type: a/b\r\nContent-Type: a/b", "a") + end, header},
		{form, "--b\r\nX-A: 1\r\n\r\na\r\n" + end, disposition}, {form, part("", "a") + end, disposition},
		{form, part("name=s", "a") + end, disposition}, {form, part(`name="s`, "a") + end, disposition},
		{form, part(`name="s\\"`, "a") + end, disposition}, {form, part(`name="s"; name="s"`, "a") + end, disposition},
		{form, part(`name=""`, "a") + end, disposition}, {form, part(`name="s";`, "a") + end, disposition},
		{form, part(`name="s" x`, "a") + end, disposition}, {form, part(`name="s"; x="y"`, "a") + end, disposition},
		{form, part(`filename="s"`, "a") + end, disposition},
		{form, part("NAME=\"s\"\t;\tfileName=\"x\"", "a") + end, `{} s: Invalid`},
		{form, part(`name="f"; filename="a"; filename="b"`, "12") + end, disposition},
		{form, strings.Replace(s, "form-data", "attachment", 1) + end, disposition},
		{form, strings.Replace(s, "form-data", "\tForm-Data ", 1) + end, `{"s":"a%41+"}`},
		{form, part("name=\"s\"\r\nContent-Type: text", "a") + end, header},
		{form, part("name=\"s\"\r\nContent-Type: /a", "a") + end, header},
		{form, part("name=\"s\"\r\nContent-Type: a/", "a") + end, header},
		{form, part("name=\"s\"\r\nContent-Type: a/*", "a") + end, header},
		{form, part("name=\"s\"\r\nContent-Type: text/plain; Charset=\"UTF-8\"", "a") + end, `{"s":"a"}`},
		{form, part("name=\"s\"\r\nContent-Type: text/plain; charset=latin-1", "a") + end, encoded},
		{form, part("name=\"s\"\r\nContent-Transfer-Encoding: base64", "a") + end, encoded},
		{form, part("name=\"s\"\r\nContent-Transfer-Encoding: 8BIT", "a") + end, `{"s":"a"}`},
		{form, part("name=\"s\"\r\nContent-Transfer-Encoding: Binary", "a") + end, `{"s":"a"}`},
		{form, part("name=\"s\"\r\nContent-Encoding: gzip", "a") + end, encoded},
		{form, s + strings.Repeat(part(`name="n"`, "1"), 10_000) + end, "error: must have at most 10000 fields"},
	} {
		json, failures, err := test.form.ReadParts([]byte(test.body), "b")
		check(t, test.body, json, failures, err, test.want)
	}
	for boundary, ok := range map[string]bool{"": false, "azAZ09'()+_,-./:=?": true, "a b": false, "a;": false,
		strings.Repeat("b", 70): true, strings.Repeat("b", 71): false, "[": false, "`": false, "{": false, "@": false} {
		_, _, err := form.ReadParts([]byte("--"+boundary+"--"), boundary)
		if (err == nil) != ok {
			t.Errorf("the boundary %q: %v", boundary, err)
		}
	}
}

// check compares what is read of a form: the object and the failures, or the begin of the error.
func check(t *testing.T, body string, json []byte, failures field.ErrorList, err error, want string) {
	t.Helper()
	got := strings.TrimSpace(string(json) + " " + texts(failures))
	if err != nil {
		got = "error: " + err.Error()
	}
	if isPrefix := strings.HasPrefix(want, "error: ") || strings.HasSuffix(want, "Invalid") ||
		strings.HasSuffix(want, "larger"); got != want && !(isPrefix && strings.HasPrefix(got, want)) {
		t.Errorf("%.300q: got\n%s\nwant\n%s", body, got, want)
	}
}

// TestAnswers: an answer is what is declared for its code, with the headers and the body that it should have.
func TestAnswers(t *testing.T) {
	o := &contract.Operation{Answers: []contract.Answer{{Code: 0}, {Code: 2}, {Code: 201}, {Code: 4}}}
	for code, want := range map[int]int{200: 2, 201: 201, 204: 2, 404: 4, 500: 0, 301: 0} {
		if got := o.AnswerOf(code); got == nil || got.Code != want {
			t.Errorf("%d is %+v, want %d", code, got, want)
		}
	}
	o.Answers = o.Answers[1:]
	if got := o.AnswerOf(500); got != nil {
		t.Errorf("500 is %+v", got)
	}
	var kinds []string
	for k := range contract.Kinds {
		if kinds = append(kinds, k.String()); k == contract.OfBody {
			break
		}
	}
	if want := []string{"Code", "MediaType", "Header", "Body"}; !slices.Equal(kinds, want) {
		t.Errorf("kinds are %v, want %v", kinds, want)
	}
	hidden := &contract.Members{}
	hidden.SetMember("secret", true, nil)
	body := compiled(t,
		"{type: object, required: [a], properties: {a: {type: integer, maximum: 5}, secret: {type: string}}}")
	a := &contract.Answer{
		Contents: []contract.Content{{Media: "application/*"},
			{Media: "application/json", Schema: body, Hidden: hidden},
			{Media: "image/*", Schema: body}},
		Headers: []contract.Parameter{
			{In: contract.InHeader, Name: "X-Left", Types: []contract.Type{contract.Integer}, IsRequired: true},
			{In: contract.InHeader, Name: "Set-Cookie", Types: []contract.Type{contract.String}},
		},
		Values: compiled(t,
			"{type: object, properties: {header: {type: object, properties: {X-Left: {type: integer, minimum: 0}, Set-Cookie: {type: string}}}}}"),
	}
	plain := &contract.Answer{}
	for _, test := range []struct {
		answer   *contract.Answer
		media    string
		left     []string
		presence contract.Presence
		want, of string
	}{
		{a, "application/json", []string{"1"}, contract.SomeBody, "", "application/json"},
		{a, " Application/JSON ;charset=utf-8", []string{" 1 "}, contract.SomeBody, "", "application/json"},
		{a, "application/xml", []string{"1"}, contract.SomeBody, "", "application/*"},
		{a, "image/png", []string{"1"}, contract.EmptyBody, "", "image/*"},
		{a, "text/plain", []string{"1"}, contract.SomeBody,
			"[{MediaType  must be one of 'application/*', 'application/json', 'image/*'}]", ""},
		{a, "", []string{"1"}, contract.SomeBody, "[{MediaType  must be named by a Content-Type}]", ""},
		{a, "", []string{"1"}, contract.EmptyBody, "[{Body  must not be missing}]", ""},
		{a, "", []string{"1"}, contract.NoBody, "", ""}, {a, "text/plain", []string{"-1"}, contract.NoBody,
			"[{Header header.X-Left Invalid value: must be greater than or equal to 0}]", ""},
		{a, "application/json", nil, contract.SomeBody, "[{Header header.X-Left Required value}]", "application/json"},
		{a, "application/json", []string{"x"}, contract.SomeBody,
			"[{Header header.X-Left Invalid value: must be an integer}]", "application/json"},
		{a, "application/json", []string{"1", "2"}, contract.SomeBody,
			"[{Header header.X-Left Invalid value: must be given once}]", "application/json"},
		{plain, "text/plain", nil, contract.SomeBody, "", ""},
	} {
		found, of := test.answer.Check(test.media, func(name string) []string {
			if name == "Set-Cookie" {
				return []string{"a=1", "b=2"}
			}
			return test.left
		}, test.presence)
		got, media := "", ""
		if len(found) > 0 {
			got = fmt.Sprint(found)
		}
		if of != nil {
			media = of.Media
		}
		if got != test.want || media != test.of {
			t.Errorf("%+v: %s, %s", test, got, media)
		}
	}
	for media, want := range map[string]bool{"application/json": true, "Application/JSON; charset=utf-8": true,
		"application/problem+json": true, "text/json": true, "text/plain": false, "": false} {
		if got := a.Contents[1].IsRead(media); got != want || a.Contents[0].IsRead(media) ||
			(*contract.Content)(nil).IsRead(media) {
			t.Errorf("%q is read: %v", media, got)
		}
	}
	for text, want := range map[string]string{
		`{"a":1}`: "", "": "[{Body  must not be empty}]", " \n": "[{Body  must not be empty}]",
		`{"a":1,"a":2}`: "[{Body  must be JSON that can be read in one way only}]",
		`{"a":6}`:       "[{Body a Invalid value: must be less than or equal to 5}]", `{}`: "[{Body a Required value}]",
		`{"a":1,"secret":"x"}`: "[{WriteOnly secret must not be shown: it is writeOnly}]",
		`[]`:                   "[{Body  Invalid value: must be of type object}]",
	} {
		found, err := a.Contents[1].CheckBody([]byte(text), document.Limits{})
		got := ""
		if len(found) > 0 {
			got = fmt.Sprint(found)
		}
		if err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
	if _, err := a.Contents[1].CheckBody([]byte(`{"a":1}`), document.Limits{Bytes: 3}); err == nil {
		t.Error("a body that is too large is checked")
	}
	ruled := &contract.Content{Schema: compiled(t,
		"{type: object, properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: self.a > 1}]}")}
	if found, err := ruled.CheckBody([]byte(`{"a":1}`), document.Limits{}); err != nil || len(found) != 1 {
		t.Errorf("a rule finds %v, %v", found, err)
	}
}

// TestMembers: marked members are found wherever they are, unless they are what is stored.
func TestMembers(t *testing.T) {
	inner, items, m := &contract.Members{}, &contract.Members{}, &contract.Members{}
	inner.SetMember("id", true, nil)
	items.SetItems(inner)
	m.SetMember("id", true, nil)
	m.SetMember("owner", false, inner)
	m.SetMember("list", false, items)
	others := &contract.Members{}
	others.SetOthers(inner)
	m.SetMember("map", false, others)
	if (*contract.Members)(nil).Any() || (&contract.Members{}).Any() || !m.Any() || !items.Any() || !others.Any() {
		t.Error("whether any is marked")
	}
	for _, test := range []struct{ sent, stored, want, missing string }{
		{`{"id":1,"a":2}`, "", "id", ""}, {`{"id":1,"a":2}`, `{"id":1}`, "", ""}, {`{"id":1}`, `{"id":2}`, "id=2", ""},
		{`{"id":1}`, `{"id":1}`, "", ""},
		{`{"owner":{"id":1},"list":[{"id":2},{"id":3},4],"map":{"x":{"id":5}}}`, "",
			"owner.id list[0].id list[1].id map.x.id", "id"},
		{`{"owner":{"id":1},"map":{"x":{"id":5},"y":{"id":6}}}`, `{"owner":{"id":1},"map":{"x":{"id":5},"y":{"id":7}}}`,
			"map.y.id=7", "id"},
		{`{"list":[{"id":2}]}`, `{"list":[{"id":2}]}`, "", "id"},
		{`{"list":[{"id":2},{"id":3}]}`, `{"list":[{"id":2}]}`, "list[0].id list[1].id", "id"},
		{`{"owner":{},"list":[{}],"map":{"x":{}}}`, "", "", "id owner.id list[0].id map.x.id"},
		{`{"owner":1,"list":{},"map":[]}`, "", "", "id"}, {`[]`, "", "", ""}, {`1`, "", "", ""},
	} {
		var stored document.Node
		if test.stored != "" {
			stored = parsed(t, test.stored)
		}
		var got, missing []string
		m.Each(parsed(t, test.sent), stored, func(n, before document.Node) {
			one := n.Path()
			if before.Valid() {
				one += "=" + string(before.Raw())
			}
			got = append(got, one)
		})
		m.Missing(parsed(t, test.sent), func(around document.Node, name string) {
			missing = append(missing, strings.TrimPrefix(around.Path()+"."+name, "."))
		})
		if strings.Join(got, " ") != test.want || strings.Join(missing, " ") != test.missing {
			t.Errorf("%s over %s: %v, missing %v, want %s, missing %s", test.sent, test.stored, got, missing, test.want,
				test.missing)
		}
	}
	(*contract.Members)(nil).Missing(parsed(t, "{}"), func(document.Node,
		string) {
		t.Error("a member of nothing is missing")
	})
}

// TestPatches: a patch is checked by the schema that is declared for it, and null removes a member that may be missing.
func TestPatches(t *testing.T) {
	const merge, json = "application/merge-patch+json", "application/json-patch+json"
	s, list := compiled(t,
		"{type: object, minProperties: 1, required: [a], properties: {a: {type: integer}, b: {type: string}, in: {type: object, required: [x], properties: {x: {type: integer}, y: {type: integer}}}}}"),
		compiled(t, "{type: array, items: {type: string}}")
	body := func(media string, of *schema.Schema) contract.Body { return contract.Body{Media: media, Schema: of} }
	for _, test := range []struct {
		bodies             []contract.Body
		merge, json, apply string // the media types of what checks each, and the effect
		effect             string
		holds              bool
	}{
		{nil, "", "", "", "", false}, {[]contract.Body{body(merge, s)}, merge, "", merge, merge, true},
		{[]contract.Body{body("application/json", s), body(merge, s)}, merge, "", "application/json",
			"application/json",
			true},
		{[]contract.Body{body("application/*", s), body(merge, s), body("application/json", s)}, merge, "",
			"application/*",
			"application/json", true}, {[]contract.Body{body(json, list)}, "", json, "", "", false},
		{[]contract.Body{body(json, list), body(merge, s)}, merge, json, merge, merge, false},
		{[]contract.Body{body("application/json", list), body(json, s)}, "", json, "", "", false},
		{[]contract.Body{{Media: merge}}, merge, "", "", "", false},
		{[]contract.Body{{Media: merge, As: contract.AsBytes, Schema: s}}, "", "", "", "", false},
		{[]contract.Body{body("text/x", s), body(merge, s), body("text/y", s)}, merge, "", merge, merge, true},
	} {
		o := &contract.Operation{Bodies: test.bodies}
		name := func(b *contract.Body) string {
			if b == nil {
				return ""
			}
			return b.Media
		}
		if got := [...]string{name(o.PatchBody(merge)), name(o.PatchBody(json)),
			name(o.PatchBody("application/apply-patch+yaml")), name(o.EffectBody())}; got != [...]string{test.merge,
			test.json, test.apply, test.effect} || o.HoldsEffects() != test.holds {
			t.Errorf("%v: %q, holds effects: %v", test, got, o.HoldsEffects())
		}
	}
	if (*contract.Operation)(nil).PatchBody(merge) != nil || (*contract.Operation)(nil).HoldsEffects() {
		t.Error("no operation has the body of a patch")
	}
	b := body(merge, s)
	for _, test := range []struct {
		patch string
		nulls bool
		want  string
	}{
		{`{"a":1}`, true, ""}, {`{"a":1,"b":null}`, true, ""},
		{`{"a":1,"b":null}`, false, `b: Invalid value: "null": must be of type string`},
		{`{"a":null}`, true, "a: Required value"},
		{`{"a":1,"in":{"x":1,"y":null}}`, true, ""}, {`{"a":1,"in":{"x":null}}`, true, "in.x: Required value"},
		{`{"a":1,"in":null}`, true, ""}, {`{"a":"x","b":null}`, true,
			`a: Invalid value: "string": must be of type integer`},
		{`[]`, true, `<nil>: Invalid value: "array": must be of type object`},
	} {
		if got := texts(b.CheckPatch(parsed(t, test.patch), test.nulls, noFrame).Errors); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.patch, got, test.want)
		}
	}
	few := body(merge, compiled(t, "{type: object, minProperties: 1, properties: {b: {type: string}}}"))
	if got := texts(few.CheckPatch(parsed(t, `{"b":null}`), true, noFrame).Errors); got != "" {
		t.Errorf("a null is none of the members: %s", got)
	}
	if got := texts(few.CheckPatch(parsed(t, `{}`), true, noFrame).Errors); got == "" {
		t.Error("an empty patch has a member")
	}
	if got := (&contract.Body{}).Check(parsed(t, "1"), noFrame); len(got.Errors) > 0 {
		t.Errorf("what is not described is wrong: %v", got.Errors)
	}
	spread := contract.Body{Schema: compiled(t,
		"{type: object, properties: {o: {type: object, properties: {k: {type: integer, maximum: 1}}}}}"),
		Form: &contract.Form{Fields: []contract.Parameter{{In: contract.InBody, Name: "o", Shape: contract.Object,
			Keys: contract.KeysSpread}}}}
	if got := texts(spread.Check(parsed(t, `{"o":{"k":2}}`),
		noFrame).Errors); got != "k: Invalid value: 2: must be less than or equal to 1" {
		t.Errorf("the member of a form is named %s", got)
	}
}
