package cases

import (
	"slices"
	"testing"
)

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		recorded, got string
		want          bool
	}{
		{"same", "same", true},
		{"same", "Same", false},
		{"at $NOW.", "at 2026-01-02T03:04:05Z.", true},
		{"at $NOW", "at noon", false},
		{"gen-$RANDOM", "gen-x7k2p", true},
		{"gen-$RANDOM", "gen-x7k2pp", false},
		{"gen-$RANDOM", "gen-aeiou", false},
		{"uid $UID", "uid 11111111-2222-3333-4444-555555555555", true},
		{"record ($RV). (x)", "record (17). (x)", true},
		{"record ($RV). (x)", "record (). (x)", false},
		{"$RVX", "17X", false},
		{"$PATH", "/bin", false},
	} {
		if got := matches(c.recorded, c.got); got != c.want {
			t.Errorf("matches(%q, %q) = %v", c.recorded, c.got, got)
		}
	}
}

func TestCompare(t *testing.T) {
	const denial = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "
	failure := func(reason, message string, causes ...Cause) Response {
		return Response{Code: 422, Reason: &reason, Message: message, Causes: causes}
	}
	object := func(json string) Response { return Response{Code: 200, Object: []byte(json)} }
	for _, c := range []struct {
		name      string
		want, got Response
		anyOrder  bool
		aspects   []Aspect
	}{
		{name: "the same failure", want: failure("Invalid", "m", Cause{Field: "a"}),
			got: failure("Invalid", "m", Cause{Field: "a"})},
		{name: "another code", want: Response{Code: 404}, got: Response{Code: 400}, aspects: []Aspect{Code}},
		{name: "a reason where none is recorded", want: Response{Code: 422, RawBody: ptr("text")},
			got: failure("NotFound", "m")},
		{name: "another reason", want: failure("Invalid", "m"), got: failure("BadRequest", "m"),
			aspects: []Aspect{Reason}},
		{name: "no Status", want: failure("Invalid", "m"), got: Response{Code: 422, RawBody: ptr("text")},
			aspects: []Aspect{Reason, Message}},
		{
			name: "fields are a set, without the pseudo-field and leading dots",
			want: failure("Invalid", "m", Cause{Field: ".spec.a"}, Cause{Field: "<nil>"}, Cause{Field: "spec.b"},
				Cause{Field: "spec.b"}),
			got: failure("Invalid", "m", Cause{Field: "spec.b"}, Cause{Field: "spec.a"}, Cause{}),
		},
		{name: "a field is missing", want: failure("Invalid", "m", Cause{Field: "a"}, Cause{Field: "b"}),
			got: failure("Invalid", "m", Cause{Field: "a"}), aspects: []Aspect{Fields}},
		{name: "a field too many", want: failure("Invalid", "m"), got: failure("Invalid", "m", Cause{Field: "a"}),
			aspects: []Aspect{Fields}},
		{
			name: "fields derived of a policy's denial, and further denials",
			want: failure("Invalid", denial+"x", Cause{Message: denial + "x"}),
			got: failure("Invalid", denial+"x; "+denial+"y", Cause{Message: denial + "x", Field: "a"},
				Cause{Message: denial + "y", Field: "b"}),
		},
		{
			name:    "another denial than the recorded one",
			want:    failure("Invalid", denial+"x", Cause{Message: denial + "x"}),
			got:     failure("Invalid", denial+"xy; "+denial+"x", Cause{Message: denial + "xy"}),
			aspects: []Aspect{Message},
		},
		{
			name:    "a denial where a failure of the schema is recorded",
			want:    failure("Invalid", "m", Cause{Field: "b", Message: "m"}),
			got:     failure("Invalid", denial+"x", Cause{Message: denial + "x", Field: "a"}),
			aspects: []Aspect{Fields, Message},
		},
		{name: "another message", want: failure("Invalid", "m"), got: failure("Invalid", "n"),
			aspects: []Aspect{Message}},
		{
			name: "causes in any order", anyOrder: true,
			want: failure("Invalid", "[a, b]", Cause{Field: "a", Message: "x"}, Cause{Field: "b", Message: "y"}),
			got:  failure("Invalid", "[b, a]", Cause{Field: "b", Message: "y"}, Cause{Field: "a", Message: "x"}),
		},
		{
			name: "other causes in any order", anyOrder: true,
			want:    failure("Invalid", "[a, b]", Cause{Field: "a", Message: "x"}, Cause{Field: "b", Message: "y"}),
			got:     failure("Invalid", "[b, a]", Cause{Field: "b", Message: "z"}, Cause{Field: "a", Message: "x"}),
			aspects: []Aspect{Message},
		},
		{name: "the order of members and the spelling of numbers", want: object(`{"a":1,"b":[2.50]}`),
			got: object(`{"b": [25e-1], "a": 1.0}`)},
		{name: "numbers beyond float64", want: object(`{"a":9007199254740993}`), got: object(`{"a":9007199254740992}`),
			aspects: []Aspect{Object}},
		{name: "a number without end", want: object(`{"a":1e999999999}`), got: object(`{"a":1e999999998}`),
			aspects: []Aspect{Object}},
		{name: "a member is missing", want: object(`{"a":1,"b":null}`), got: object(`{"a":1}`),
			aspects: []Aspect{Object}},
		{name: "a member too many", want: object(`{"a":1}`), got: object(`{"a":1,"b":null}`),
			aspects: []Aspect{Object}},
		{name: "the order of items", want: object(`[1,2]`), got: object(`[2,1]`), aspects: []Aspect{Object}},
		{name: "another type", want: object(`{"a":{}}`), got: object(`{"a":[]}`), aspects: []Aspect{Object}},
		{name: "no object", want: object(`{"a":1}`), got: Response{Code: 200, RawBody: ptr("")},
			aspects: []Aspect{Object}},
		{
			name: "metadata that differs from run to run",
			want: object(`{"metadata":{"name":"a"}}`),
			got:  object(`{"metadata":{"name":"a","uid":"u","resourceVersion":"1","creationTimestamp":"now","managedFields":[]}}`),
		},
		{
			name: "metadata that the server keeps",
			want: object(`{"metadata":{"name":"a","generation":1}}`), got: object(`{"metadata":{"name":"a"}}`),
			aspects: []Aspect{Metadata},
		},
		{
			name:    "metadata of a list and its items",
			want:    object(`{"kind":"AList","metadata":{"continue":""},"items":[{"metadata":{"name":"a","generation":1}}]}`),
			got:     object(`{"kind":"AList","metadata":{"resourceVersion":"4"},"items":[{"metadata":{"name":"a","uid":"u"}}]}`),
			aspects: []Aspect{Metadata},
		},
		{
			name: "metadata in a table",
			want: object(`{"kind":"Table","rows":[{"cells":["a"],"object":{"metadata":{"name":"a"}}}]}`),
			got:  object(`{"kind":"Table","rows":[{"cells":["a"],"object":{"metadata":{"name":"a","uid":"u"}}}]}`),
		},
		{name: "masks in objects", want: object(`{"metadata":{"name":"x-$RANDOM"}}`),
			got: object(`{"metadata":{"name":"x-bcdfg"}}`)},
		{name: "warnings in any order", want: Response{Warnings: []string{"a", "b"}},
			got: Response{Warnings: []string{"b", "a"}}},
		{name: "a warning is missing", want: Response{Warnings: []string{"a"}}, got: Response{},
			aspects: []Aspect{Warnings}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Result{Case: &Case{Expect: c.want, OrderUnstable: c.anyOrder}, Got: c.got}
			r.compare()
			var aspects []Aspect
			for _, d := range r.Differences {
				aspects = append(aspects, d.Aspect)
			}
			if !slices.Equal(aspects, c.aspects) {
				t.Errorf("differs in %v, want %v:\n%s", aspects, c.aspects, r.Explain(Aspects()...))
			}
		})
	}
}

func TestCompareFollowAndKube(t *testing.T) {
	c := Case{
		Expect:     Response{Code: 201, Follow: []Response{{Code: 200}, {Code: 404}}},
		ExpectKube: &Response{Code: 404, Reason: ptr("NotFound")},
	}
	r := Result{Case: &c, Got: Response{Code: 201, Follow: []Response{{Code: 200}, {Code: 200}}}}
	r.compare()
	if got, want := r.Explain(Aspects()...), "follow 2: code: want 404, got 200"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if r.Agrees(Code) || !r.Agrees(Reason) {
		t.Error("a difference in an answer that follows must count, in its aspect alone")
	}
	r = Result{Case: &c, Got: Response{Code: 404, Reason: ptr("NotFound")}}
	r.compare()
	if len(r.Differences) != 0 {
		t.Errorf("the full server's answer must be agreement too: %v", r.Differences)
	}
}
