package contract_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/openapi"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/testutil"
)

const parameters = `
openapi: 3.1.0
info: {title: Books, version: "1"}
paths:
  /shops/{shop}/books/{id}:
    parameters:
    - {name: id, in: path, required: true, schema: {type: integer, minimum: 1}}
    - {name: shop, in: path, required: true, schema: {type: string, pattern: '^[a-z]+$'}}
    get:
      parameters:
      - {name: limit, in: query, schema: {$ref: '#/components/schemas/Limit'}}
      - {name: price, in: query, schema: {type: number, exclusiveMinimum: 0}}
      - {name: full, in: query, schema: {type: boolean}}
      - {name: since, in: query, schema: {type: string, format: date}}
      - {name: order, in: query, schema: {enum: [up, down]}}
      - {name: page, in: query, schema: {anyOf: [{type: integer, maximum: 9}, {type: "null"}]}}
      - {name: when, in: query, schema: {type: [integer, string], maxLength: 3, maximum: 5}}
      - {name: tag, in: query, schema: {type: array, items: {type: string, maxLength: 3}, maxItems: 2, uniqueItems: true}}
      - {name: ids, in: query, explode: false, schema: {type: array, items: {type: integer}}}
      - {name: blanks, in: query, style: spaceDelimited, explode: false, schema: {type: array, items: {type: integer}}}
      - {name: pipes, in: query, style: pipeDelimited, explode: false, schema: {type: array, items: {type: integer}}}
      - {name: filter, in: query, content: {application/json: {schema: {type: object, properties: {a: {type: integer}}, required: [a]}}}}
      - {name: empty, in: query, allowEmptyValue: true, schema: {type: integer}}
      - {name: a b, in: query, schema: {type: integer}}
      - {name: X-Trace, in: header, schema: {type: string, format: uuid}}
      - {name: X-List, in: header, schema: {type: array, items: {type: integer}}}
      - {name: Accept, in: header, schema: {type: integer}}
      - {name: session, in: cookie, schema: {type: string, minLength: 4}}
      - {name: bare, in: query}
      - {name: limit, in: cookie, schema: {type: integer, default: 1}}
    put:
      parameters: [{name: must, in: query, required: true, schema: {type: string}}, {name: X-Must, in: header, required: true, schema: {type: string}}]
components:
  schemas: {Limit: {type: integer, minimum: 1, maximum: 50, default: 10}}
`

// resourcesIn returns the resources of a document.
func resourcesIn(t testing.TB, text string) []*openapi.Resource {
	t.Helper()
	objects, errs := manifest.Read("api.yaml", []byte(text))
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	parsed, err := document.Parse(objects[0].JSON, document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(parsed.Release)
	d, err := openapi.New(parsed)
	if err != nil {
		t.Fatal(err)
	}
	resources, _, _ := d.Resources(nil)
	return resources
}

// operation compiles a document's operation of a verb.
func operation(t testing.TB, document string, verb resource.Verb) *contract.Operation {
	t.Helper()
	resources := resourcesIn(t, document)
	if len(resources) != 1 {
		t.Fatalf("%d resources", len(resources))
	}
	for _, o := range resources[0].Operations() {
		if o.Verb == verb {
			made := &contract.Operation{Parameters: o.Parameters, Security: o.Security}
			if o.Values != nil {
				s, _, errs := o.Values.Compile(schema.Options{})
				if len(errs) > 0 {
					t.Fatalf("%v at %s", errs, o.Values.Where(errs[0].Field))
				}
				made.Values = s
			}
			return made
		}
	}
	t.Fatalf("no operation %s", verb)
	return nil
}

// asked parses the head of a request: a target, and lines of headers.
func asked(t testing.TB, target string, lines ...string) (*resource.Info, *message.Head) {
	t.Helper()
	text := "GET " + target + " HTTP/1.1\r\nHost: a\r\n"
	for _, l := range lines {
		text += l + "\r\n"
	}
	head := &message.Head{}
	if err := head.Parse([]byte(text+"\r\n"), &message.Options{}); err != nil {
		t.Fatal(err)
	}
	i := &resource.Info{}
	i.Path, i.Query, _ = strings.Cut(target, "?")
	return i, head
}

func TestParameters(t *testing.T) {
	get := operation(t, parameters, resource.VerbGet)
	for _, test := range []struct {
		query string
		lines []string
		want  []string
	}{
		{query: ""},
		{query: "limit=5&price=0.5&full=true&since=2026-01-02&order=up&page=9&when=5&tag=a&tag=b&ids=1,2&blanks=1%202+3&pipes=1|2%7C3&empty=&a+b=1&bare=%C3%BC&other=;"},
		{query: "l%69mit=51", want: []string{`query.limit: Invalid value: 51: must be less than or equal to 50`}},
		{query: "limit=x", want: []string{`query.limit: Invalid value: "x": must be an integer`}},
		{query: "limit=", want: []string{`query.limit: Invalid value: "": must be an integer`}},
		{query: "limit=05", want: []string{`query.limit: Invalid value: "05": must be an integer`}},
		{query: "limit=1.0", want: []string{`query.limit: Invalid value: "1.0": must be an integer`}},
		{query: "limit=%31", want: nil},
		{query: "limit=1&limit=2", want: []string{`query.limit: Invalid value: "1": must be given once`}},
		{query: "limit=99999999999999999999",
			want: []string{`query.limit: Invalid value: "99999999999999999999": must be an integer`}},
		{query: "price=1e", want: []string{`query.price: Invalid value: "1e": must be a number`}},
		{query: "price=-1.5e3", want: []string{`query.price: Invalid value: -1.5e3: must be greater than 0`}},
		{query: "full=1", want: []string{`query.full: Invalid value: "1": must be 'true' or 'false'`}},
		{query: "since=today", want: []string{`query.since: Invalid value: "today": must be a valid 'date'`}},
		{query: "order=left", want: []string{`query.order: Unsupported value: "left": supported values: "up", "down"`}},
		{query: "page=10", want: []string{`query.page: Invalid value: 10: must be less than or equal to 9`}},
		{query: "when=6&page=x", want: []string{`query.page: Invalid value: "x": must be an integer`,
			`query.when: Invalid value: 6: must be less than or equal to 5`}},
		{query: "when=word", want: []string{`query.when: Too long: must be at most 3 characters`}},
		{query: "tag=long&tag=b&tag=b", want: []string{`query.tag: Too many: 3: must have at most 2 items`,
			`query.tag[0]: Too long: must be at most 3 characters`, `query.tag[2]: Duplicate value: "b"`}},
		{query: "ids=1,x,2%2C3", want: []string{`query.ids[1]: Invalid value: "x": must be an integer`,
			`query.ids[2]: Invalid value: "2,3": must be an integer`}},
		{query: "ids=1&ids=2", want: []string{`query.ids: Invalid value: "1": must be given once`}},
		{query: "ids="},
		{query: "blanks=1+a", want: []string{`query.blanks[1]: Invalid value: "a": must be an integer`}},
		{query: "pipes=1%7Ca", want: []string{`query.pipes[1]: Invalid value: "a": must be an integer`}},
		{query: `filter=%7B%22a%22:1%7D`},
		{query: `filter=%7B%22a%22:%22b%22%7D`,
			want: []string{`query.filter.a: Invalid value: "string": must be of type integer`}},
		{query: `filter=%7B%22b%22:1%7D`, want: []string{`query.filter.a: Required value`}},
		{query: `filter=%7B%22a%22:1,%22a%22:2%7D`,
			want: []string{`query.filter: Invalid value: "{\"a\":1,\"a\":2}": must be JSON that can be read in one way only`}},
		{query: "a%20b=c", want: []string{`query.a b: Invalid value: "c": must be an integer`}},
		{query: "bare=%FF", want: []string{`query.bare: Invalid value: "` + "\uFFFD" + `": must be text in UTF-8`}},
		{lines: []string{"x-trace: 1", "X-List: 1, 2", "X-List: a", "Cookie: limit=z; session=abc",
			"Accept: text/plain"},
			want: []string{
				`header.X-List[2]: Invalid value: "a": must be an integer`,
				`cookie.limit: Invalid value: "z": must be an integer`,
				`header.X-Trace: Invalid value: "1": must be a valid 'uuid'`,
				`cookie.session: Invalid value: "abc": must be at least 4 characters`,
			}},
		{lines: []string{"X-Trace: a", "X-Trace: b"},
			want: []string{`header.X-Trace: Invalid value: "a": must be given once`}},
		{lines: []string{"Cookie: session=abcd; other=x"}},
	} {
		target := "/shops/a/books/7"
		if test.query != "" {
			target += "?" + test.query
		}
		if got := failuresOf(get, t, target, test.lines...); !slices.Equal(got, test.want) {
			t.Errorf("%s %v: got\n%s\nwant\n%s", target, test.lines, strings.Join(got, "\n"),
				strings.Join(test.want, "\n"))
		}
	}
	for path, want := range map[string][]string{
		"/shops/a/books/0": {`path.id: Invalid value: 0: must be greater than or equal to 1`},
		"/shops/A/books/x": {`path.id: Invalid value: "x": must be an integer`,
			`path.shop: Invalid value: "A": must match the regular expression '^[a-z]+$'`},
		"/shops/%61/books/%37": nil,
		"/shops/a+/books/+7": {`path.id: Invalid value: "+7": must be an integer`,
			`path.shop: Invalid value: "a+": must match the regular expression '^[a-z]+$'`},
	} {
		if got := failuresOf(get, t, path); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	want := []string{"query.must: Required value", "header.X-Must: Required value",
		`path.shop: Invalid value: "A": must match the regular expression '^[a-z]+$'`}
	if got := failuresOf(operation(t, parameters, resource.VerbUpdate), t, "/shops/A/books/1?other=1"); !slices.Equal(
		got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Values in paths are read in each style. What stands before them is no part of them.
func TestPathStyles(t *testing.T) {
	const list, object = "{type: array, items: {type: integer}, maxItems: 3}",
		"{type: object, required: [R], properties: {R: {type: integer, maximum: 255}, G: {type: integer}}}"
	for _, test := range []struct{ parameter, path, want string }{
		{"style: simple, schema: {type: integer}", "5", ""},
		{"style: label, schema: {type: integer}", ".5", ""},
		{"style: label, schema: {type: integer}", "5", `path.x: Invalid value: "5": must begin with '.'`},
		{"style: label, schema: {type: integer, maximum: 4}", ".5",
			"path.x: Invalid value: 5: must be less than or equal to 4"},
		{"style: label, schema: {type: string, maxLength: 1}", ".a.b", "path.x: Too long: must be at most 1 character"},
		{"style: label, schema: " + list, ".1,2,3", ""},
		{"style: label, schema: " + list, ".1,b", `path.x[1]: Invalid value: "b": must be an integer`},
		{"style: label, explode: true, schema: " + list, ".1.2.3", ""},
		{"style: label, explode: true, schema: " + list, ".1.2.3.4", "path.x: Too many: 4: must have at most 3 items"},
		{"style: label, schema: " + object, ".R,100,G,200", ""},
		{"style: label, schema: " + object, ".R,256",
			"path.x.R: Invalid value: 256: must be less than or equal to 255"},
		{"style: label, explode: true, schema: " + object, ".R=100.G=200", ""},
		{"style: label, explode: true, schema: " + object, ".G=200", "path.x.R: Required value"},
		{"style: matrix, schema: {type: integer}", ";x=5", ""},
		{"style: matrix, schema: {type: integer}", ";x=%35", ""},
		{"style: matrix, schema: {type: string}", ";x", ""},
		{"style: matrix, schema: {type: string, minLength: 1}", ";x",
			"path.x: Invalid value: \"\": must be at least 1 character"},
		{"style: matrix, schema: {type: integer}", "5",
			`path.x: Invalid value: "5": must be one value that begins with ';x='`},
		{"style: matrix, schema: {type: integer}", ";y=5",
			`path.x: Invalid value: ";y=5": must be one value that begins with ';x='`},
		{"style: matrix, schema: {type: integer}", ";x=5;x=6", `path.x: Invalid value: "5;x=6": must be an integer`},
		{"style: matrix, schema: " + list, ";x=1,2,3", ""},
		{"style: matrix, schema: " + list, ";x=1,b", `path.x[1]: Invalid value: "b": must be an integer`},
		{"style: matrix, explode: true, schema: " + list, ";x=1;x=2;x=3", ""},
		{"style: matrix, explode: true, schema: " + list, ";x=1;x=b",
			`path.x[1]: Invalid value: "b": must be an integer`},
		{"style: matrix, explode: true, schema: " + list, ";x=1;y=2",
			`path.x: Invalid value: ";x=1;y=2": must have ';x=' before each value`},
		{"style: matrix, schema: " + object, ";x=R,100,G,200", ""},
		{"style: matrix, schema: " + object, ";x=G,200", "path.x.R: Required value"},
		{"style: matrix, explode: true, schema: " + object, ";R=100;G=200", ""},
		{"style: matrix, explode: true, schema: " + object, ";R=100;R=1",
			`path.x.R: Invalid value: "1": must be given once`},
		{"style: matrix, explode: true, schema: " + object, "R=100",
			`path.x: Invalid value: "R=100": must begin with ';'`},
	} {
		o := operation(t,
			"openapi: 3.1.0\ninfo: {title: A, version: '1'}\npaths: {'/a/{x}': {get: {parameters: [{name: x, in: path, required: true, "+test.parameter+"}]}}}\n",
			resource.VerbGet)
		if got := strings.Join(failuresOf(o, t, "/a/"+test.path), "\n"); got != test.want {
			t.Errorf("%s: %s: got\n%s\nwant\n%s", test.parameter, test.path, got, test.want)
		}
	}
}

func failuresOf(o *contract.Operation, t testing.TB, target string, lines ...string) (all []string) {
	t.Helper()
	i, head := asked(t, target, lines...)
	for _, err := range o.Check(i, head, func() *cel.Frame { t.Fatal("a frame without rules"); return nil }) {
		all = append(all, err.Error())
	}
	return all
}

// Right parameters cost no allocation.
func TestParametersAllocate(t *testing.T) {
	o := operation(t, parameters, resource.VerbGet)
	i, head := asked(t, "/shops/a/books/7?limit=5&tag=a&since=2026-01-02",
		"X-Trace: 123e4567-e89b-12d3-a456-426614174000", "Cookie: session=abcd")
	if n := testing.AllocsPerRun(100, func() { o.Check(i, head, nil) }); n > 0 && !testutil.Race {
		t.Errorf("%v allocations", n)
	}
}

func TestSecurity(t *testing.T) {
	document := func(security string) string {
		return `
openapi: 3.1.0
security: [{basic: []}]
paths:
  /things/{id}:
    get: {security: ` + security + `, responses: {}}
components:
  securitySchemes:
    basic: {type: http, scheme: basic}
    bearer: {type: http, scheme: bearer}
    login: {type: openIdConnect, openIdConnectUrl: 'https://example.com'}
    header: {type: apiKey, in: header, name: X-Key}
    query: {type: apiKey, in: query, name: key}
    cookie: {type: apiKey, in: cookie, name: session}
`
	}
	for _, test := range []struct {
		security, target string
		lines            []string
		ok               bool
		challenge        string
	}{
		{"[{basic: []}]", "/things/1", nil, false, `Basic realm="api"`},
		{"[{basic: []}]", "/things/1", []string{"Authorization: Basic"}, false, `Basic realm="api"`},
		{"[{basic: []}]", "/things/1", []string{"Authorization: bearer x"}, false, `Basic realm="api"`},
		{"[{basic: []}]", "/things/1", []string{"authorization: basic eA=="}, true, ""},
		{"[{basic: []}, {login: []}, {bearer: []}]", "/things/1", nil, false, `Basic realm="api", Bearer realm="api"`},
		{"[{basic: []}, {login: []}]", "/things/1", []string{"Authorization: Bearer x"}, true, ""},
		{"[{header: []}]", "/things/1", nil, false, ""},
		{"[{header: []}]", "/things/1", []string{"x-key: 1"}, true, ""},
		{"[{query: []}]", "/things/1?key=", nil, false, ""},
		{"[{query: []}]", "/things/1?key=1", nil, true, ""},
		{"[{cookie: []}]", "/things/1", []string{"Cookie: other=1; session="}, false, ""},
		{"[{cookie: []}]", "/things/1", []string{"Cookie: other=1; session=2"}, true, ""},
		{"[{header: [], bearer: []}]", "/things/1", []string{"X-Key: 1"}, false, `Bearer realm="api"`},
		{"[{header: [], bearer: []}]", "/things/1", []string{"X-Key: 1", "Authorization: Bearer x"}, true, ""},
	} {
		i, head := asked(t, test.target, test.lines...)
		ok, challenge := operation(t, document(test.security), resource.VerbGet).Authenticates(i, head)
		if ok != test.ok || challenge != test.challenge {
			t.Errorf("%s %s %v: got %v %q", test.security, test.target, test.lines, ok, challenge)
		}
	}
	for _, free := range []string{"[]", "[{basic: []}, {}]"} {
		if got := resourcesIn(t, document(free))[0].Operations(); len(got) > 0 {
			t.Errorf("%s: got %+v", free, got)
		}
	}
}
