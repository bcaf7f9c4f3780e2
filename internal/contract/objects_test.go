package contract_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/admission-gateway/gateway/internal/resource"
)

const objects = `
openapi: 3.0.3
info: {title: a, version: v1}
paths:
  /things/{id}:
    parameters:
    - {name: id, in: path, required: true, schema: {$ref: '#/components/schemas/Size'}}
    get:
      responses: {'200': {description: ok}}
      parameters:
      - {name: size, in: query, schema: {$ref: '#/components/schemas/Size'}}
      - {name: flat, in: query, explode: false, schema: {$ref: '#/components/schemas/Box'}}
      - {name: deep, in: query, style: deepObject, explode: true, schema: {type: object, required: [a], additionalProperties: false, properties: {a: {type: integer}, tags: {type: array, items: {type: string}, maxItems: 2}}}}
      - {name: map, in: query, style: deepObject, explode: true, schema: {type: object, additionalProperties: {type: integer}}}
      - {name: pipes, in: query, style: pipeDelimited, explode: false, schema: {$ref: '#/components/schemas/Box'}}
      - {name: blanks, in: query, style: spaceDelimited, explode: false, schema: {$ref: '#/components/schemas/Box'}}
      - {name: filter, in: query, content: {application/json: {schema: {$ref: '#/components/schemas/Box'}}}}
      - {name: X-Box, in: header, schema: {$ref: '#/components/schemas/Box'}}
      - {name: X-Pairs, in: header, explode: true, schema: {$ref: '#/components/schemas/Box'}}
components:
  schemas:
    Size: {type: object, properties: {w: {type: integer, maximum: 9}, h: {type: integer}}}
    Box: {type: object, properties: {x: {type: integer, maximum: 9}, name: {type: string}}}
`

// TestObjectParameters: objects are read as their style says, and failures name the member as the request spells it.
func TestObjectParameters(t *testing.T) {
	get := operation(t, objects, resource.VerbGet)
	for _, test := range []struct {
		query string
		lines []string
		want  []string
	}{
		{query: "w=1&h=2&flat=x,3,name,a&deep[a]=1&deep%5Btags%5D=b&deep[tags]=c&map[k]=4&pipes=x|3%7Cname|b&blanks=x%203+name%20c&filter=%7B%22x%22:3%7D",
			lines: []string{"X-Box: x,1,name,b", "X-Pairs: x=1,name=b"}},
		{query: "w=10&h=a", want: []string{`query.h: Invalid value: "a": must be an integer`,
			`query.w: Invalid value: 10: must be less than or equal to 9`}},
		{query: "w=1&w=2", want: []string{`query.w: Invalid value: "1": must be given once`}},
		{query: "flat=x,10", want: []string{`query.flat.x: Invalid value: 10: must be less than or equal to 9`}},
		{query: "flat=x,q", want: []string{`query.flat.x: Invalid value: "q": must be an integer`}},
		{query: "flat=x",
			want: []string{`query.flat: Invalid value: "x": must have a value for each member, such as name,value`}},
		{query: "flat=x,1,x,2", want: []string{`query.flat.x: Invalid value: "2": must be given once`}},
		{query: "deep[tags]=b", want: []string{`query.deep.a: Required value`}},
		{query: "deep[a]=1&deep[b]=2",
			want: []string{`query.deep: Invalid value: "b": may not be set: the schema allows no other`}},
		{query: "deep[a]=1&deep[a]=2", want: []string{`query.deep.a: Invalid value: "1": must be given once`}},
		{query: "deep[a][b]=1",
			want: []string{`query.deep: Invalid value: "deep[a][b]": must have members with names, and no objects within them`,
				`query.deep.a: Required value`}},
		{query: "map[]=1", want: []string{`query.map: Invalid value: "map[]": must have members with names`}},
		{query: "deep[a]=1&deep[tags]=b&deep[tags]=c&deep[tags]=d",
			want: []string{`query.deep.tags: Too many: 3: must have at most 2 items`}},
		{query: "map[k]=a", want: []string{`query.map.k: Invalid value: "a": must be an integer`}},
		{query: "pipes=x|a", want: []string{`query.pipes.x: Invalid value: "a": must be an integer`}},
		{query: "filter=%7B%22x%22:30%7D",
			want: []string{`query.filter.x: Invalid value: 30: must be less than or equal to 9`}},
		{lines: []string{"X-Box: x,10", "X-Pairs: x"}, want: []string{
			`header.X-Pairs: Invalid value: "x": must have a value for each member, such as name=value`,
			`header.X-Box.x: Invalid value: 10: must be less than or equal to 9`,
		}},
	} {
		got := failuresOf(get, t, "/things/w,1?"+test.query, test.lines...)
		if !slices.EqualFunc(got, test.want, strings.HasPrefix) {
			t.Errorf("%s %v: got\n%s\nwant\n%s", test.query, test.lines, strings.Join(got, "\n"),
				strings.Join(test.want,
					"\n"))
		}
	}
	want := []string{`path.id.w: Invalid value: 10: must be less than or equal to 9`}
	if got := failuresOf(get, t, "/things/h,1,w,10"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzObjectParameters: what is right here is right for the library that reads parameters by a document, too.
func FuzzObjectParameters(f *testing.F) {
	for _, query := range []string{
		"w=1&h=2", "flat=x,3,name,a", "deep[a]=1&deep%5Btags%5D=b", "map[k]=4&map[l]=5", "pipes=x|3|name|b",
		"blanks=x%203%20name%20c",
		"filter=%7B%22x%22:3%7D", "deep[a]=01", "flat=", "map[]=1",
	} {
		f.Add(query)
	}
	document, err := openapi3.NewLoader().LoadFromData([]byte(objects))
	if err != nil {
		f.Fatal(err)
	}
	o := operation(f, objects, resource.VerbGet)
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil || strings.ContainsAny(query, "#\x00\r\n\t ") || strings.Contains(query, "+") || !isASCII(query) {
			return
		}
		empty := func(texts []string) bool { return slices.Contains(texts, "") }
		if len(values["deep[tags]"]) > 0 || empty(values["flat"]) || empty(values["pipes"]) || empty(values["blanks"]) {
			return // lists in deep objects have no indexes here, and an object may be empty
		}
		if len(failuresOf(o, t, "/things/w,1?"+query)) > 0 {
			return
		}
		r, err := http.NewRequest(http.MethodGet, "http://a/things/w,1?"+query, nil)
		if err != nil {
			return
		}
		input := &openapi3filter.RequestValidationInput{Request: r, PathParams: map[string]string{"id": "w,1"},
			QueryParams: values}
		for _, p := range document.Paths.Find("/things/{id}").Get.Parameters {
			if p.Value.In != "query" {
				continue
			}
			if err := openapi3filter.ValidateParameter(context.Background(), input, p.Value); err != nil {
				t.Errorf("%s: %s: %v", query, p.Value.Name, err)
			}
		}
	})
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c > 0x7e || c < 0x21 })
}
