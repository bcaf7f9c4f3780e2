package refusal

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// invalid is a refusal with failures in a body and in a parameter.
var invalid = Refusal{
	Status: &metav1.Status{Code: 422, Reason: "Invalid", Message: "Order is invalid",
		Details: &metav1.StatusDetails{Kind: "Order", Name: "o1", Causes: []metav1.StatusCause{
			{Type: "FieldValueInvalid", Message: "Invalid value: 0: must be greater than 0", Field: "query.limit"},
			{Type: "FieldValueRequired", Message: "Required value", Field: "lines[0].sku"},
		}}},
	Parameters: []string{"query.limit"}, RequestID: "r1", Method: "POST", Path: "/v2/orders",
}

func templateOf(t *testing.T, s *Spec) *Template {
	t.Helper()
	made, errs := Compile("t", s, field.NewPath("spec"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return made
}

func TestWrite(t *testing.T) {
	limited := Refusal{Status: &metav1.Status{Code: 429, Reason: "TooManyRequests", Message: "a \xff",
		Details: &metav1.StatusDetails{RetryAfterSeconds: 7}}}
	unknown := Refusal{Status: &metav1.Status{Code: 499, Reason: "Gone away"}}
	for _, c := range []struct {
		name    string
		spec    Spec
		refusal Refusal
		code    int
		want    string
	}{
		{"all that is known", Spec{MediaType: "application/json", Body: "self"}, invalid, 422, `{"code":422,"title":"Unprocessable Entity","reason":"Invalid","message":"Order is invalid","retryAfterSeconds":0,` +
			`"kind":"Order","name":"o1","requestID":"r1","method":"POST","path":"/v2/orders","failures":[` +
			`{"field":"query.limit","location":"query","reason":"FieldValueInvalid","message":"Invalid value: 0: must be greater than 0","detail":"must be greater than 0","path":["limit"]},` +
			`{"field":"lines[0].sku","location":"body","reason":"FieldValueRequired","message":"Required value","detail":"Required value","path":["lines",0,"sku"]}]}`},
		{"nothing but a code", Spec{MediaType: "application/json", Body: "self"}, unknown, 499, `{"code":499,"title":"Gone away","reason":"Gone away","message":"","retryAfterSeconds":0,` +
			`"kind":"","name":"","requestID":"","method":"","path":"","failures":[]}`},
		{"keys are sorted, and numbers are exact",
			Spec{MediaType: "application/vnd.api+json; charset=utf-8",
				Body: "{'b': dyn(9007199254740993), 'a': dyn([dyn(1.5), dyn(null), dyn(true)])}"}, invalid, 422,
			`{"a":[1.5,null,true],"b":9007199254740993}`},
		{"another code", Spec{MediaType: "application/json", StatusCode: "self.code == 429 ? 503 : 400",
			Body: "self.retryAfterSeconds"}, limited, 503, "7"},
		{"text", Spec{MediaType: "text/plain; charset=utf-8", Body: "self.title + ': ' + self.message + '\"'"}, limited,
			429, "Too Many Requests: a \uFFFD\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, body, err := templateOf(t, &c.spec).Write(&c.refusal)
			if err != nil || code != c.code || string(body) != c.want {
				t.Errorf("got %d %s, %v\nwant %d %s", code, body, err, c.code, c.want)
			}
		})
	}
}

// TestFaults: a template that cannot decide says so, and never lets a refusal look like a success.
func TestFaults(t *testing.T) {
	for _, c := range []struct{ name, code, body, want string }{
		{"a success", "200", "''", "statusCode: must be from 400 to 599, not 200"},
		{"no code", "600", "''", "statusCode: must be from 400 to 599, not 600"},
		{"a failing code", "self.failures[7].path.size()", "''", "statusCode: expression 'self.failures[7].path.size()' resulted in error: index out of bounds: 7"},
		{"a failing body", "", "self.failures[7].field", "body: expression 'self.failures[7].field' resulted in error: index out of bounds: 7"},
		{"too much work", "", "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, a+b+c+d+e > 0)))))",
			"body: the template takes too much work"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, body, err := templateOf(t, &Spec{MediaType: "application/json", StatusCode: c.code, Body: c.body}).Write(
				&invalid)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || body != nil {
				t.Errorf("got %s, %v, want %s", body, err, c.want)
			}
		})
	}
}

func TestCompile(t *testing.T) {
	for _, c := range []struct {
		name string
		spec Spec
		want string
	}{
		{"no media type", Spec{MediaType: "json", Body: "'a'"}, `spec.mediaType: Invalid value: "json": must be a media type, such as 'application/json'`},
		{"a media type of two lines", Spec{MediaType: "a/b\r\nX: y", Body: "'a'"},
			`spec.mediaType: Invalid value: "a/b\r\nX: y": must be a media type`},
		{"a code that is no number", Spec{MediaType: "application/json", StatusCode: "'400'", Body: "1"},
			`spec.statusCode: Invalid value: "'400'": must evaluate to int but got string`},
		{"text of a map", Spec{MediaType: "text/plain", Body: "{'a': 1}"}, `spec.body: Invalid value: "{'a': 1}": must evaluate to string but got map(string, int)`},
		{"a map whose keys are numbers", Spec{MediaType: "application/json", Body: "{1: 1}"}, `spec.body: Invalid value: "{1: 1}": must evaluate to a value that can be written as JSON but got map(int, int)`},
		{"an unknown member", Spec{MediaType: "application/json", Body: "self.causes"}, `undefined field 'causes'`},
		{"another variable", Spec{MediaType: "application/json", Body: "object"}, `undeclared reference to 'object'`},
		{"no expression", Spec{MediaType: "application/json", Body: "{"}, `Syntax error`},
	} {
		made, errs := Compile("t", &c.spec, field.NewPath("spec"))
		if made != nil || len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, errs, c.want)
		}
	}
}

func TestParts(t *testing.T) {
	for path, want := range map[string][]pathElement{
		"": nil, "a": {{"a", false}}, "lines[10].sku": {{"lines", false}, {"10", true}, {"sku", false}},
		"metadata.labels[a.b/c]": {{"metadata", false}, {"labels", false}, {"a.b/c", false}},
		"[3].x":                  {{"3", true}, {"x", false}},
		"a[01]":                  {{"a", false}, {"01", false}}, "a[": {{"a", false}, {"[", false}},
		"a..b": {{"a", false}, {"b", false}}, "[]": {{"", false}},
	} {
		if got := pathElements(path); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", path, got, want)
		}
	}
}

// FuzzWrite: whatever clients put into a refusal, what is read of it is a JSON document with all of it.
func FuzzWrite(f *testing.F) {
	f.Add("a[0].b", "Invalid value: \"\xff\": must be\u0000 short", "/v2/\u2028")
	template, errs := Compile("t",
		&Spec{MediaType: "application/json",
			Body: "self.failures.map(f, f.field + f.path.map(p, string(p)).join('') + f.message)"}, nil)
	if len(errs) > 0 {
		f.Fatal(errs)
	}
	f.Fuzz(func(t *testing.T, at, message, path string) {
		r := Refusal{Status: &metav1.Status{Code: 400,
			Details: &metav1.StatusDetails{
				Causes: []metav1.StatusCause{{Type: "FieldValueInvalid", Field: at, Message: message}}}}, Path: path,
			Parameters: []string{at}}
		code, body, err := template.Write(&r)
		if err != nil || code != 400 || !json.Valid(body) {
			t.Fatalf("%d %s %v", code, body, err)
		}
	})
}
