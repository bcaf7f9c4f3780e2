package schema_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

const validateSpec = `{type: object, required: [size], properties: {
	size: {type: integer, minimum: 1, maximum: 1000}, small: {type: integer, format: int32}, over: {type: number, minimum: 0.5, exclusiveMinimum: true},
	under: {type: number, maximum: 2.5, exclusiveMaximum: true}, ratio: {type: number, multipleOf: 0.5}, single: {type: number, format: float},
	mode: {type: string, enum: [open, locked]}, level: {type: integer, enum: [1, 2]}, color: {type: string, pattern: '^[a-z]+$', minLength: 2, maxLength: 8},
	when: {type: string, format: date-time}, "on": {type: boolean}, port: {x-kubernetes-int-or-string: true}, none: {type: string, nullable: true},
	tags: {type: array, x-kubernetes-list-type: set, minItems: 1, maxItems: 4, items: {type: string}},
	parts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, weight: {type: integer}}}},
	pairs: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a, b], items: {type: object, required: [a, b], properties: {a: {type: string}, b: {type: integer}}}},
	labels: {type: object, minProperties: 1, maxProperties: 2, additionalProperties: {type: string, minLength: 1}},
	closed: {type: object, additionalProperties: false},
	choice: {type: object, properties: {a: {type: string}, b: {type: string}, c: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]},
	some: {type: object, properties: {a: {type: integer}, b: {type: string}}, anyOf: [{required: [a], properties: {a: {minimum: 5}}}, {required: [b], properties: {b: {minLength: 3}}}]},
	both: {type: integer, allOf: [{minimum: 5}, {multipleOf: 2}], not: {enum: [8]}},
	tpl: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}`

// VAL-1, VAL-2, VAL-3, VAL-5, VAL-7, VAL-8: every keyword, its words and its field.
func TestValidate(t *testing.T) {
	s := compiled(t, validateSpec)
	for _, c := range []struct {
		name, spec string
		want       []string
	}{
		{"valid", `{"size":1}`, nil},
		{"required", `{}`, []string{"spec.size: Required value"}},
		{"integers", `{"size":"5","small":1.5,"level":true}`, []string{
			`spec.size: Invalid value: "string": must be of type integer`,
			`spec.small: Invalid value: "number": must be of type integer`,
			`spec.level: Invalid value: "boolean": must be of type integer`,
			`spec.level: Unsupported value: true: supported values: "1", "2"`,
		}},
		{"integers spelled as doubles", `{"size":1e1,"small":2.0,"level":1.0}`, nil},
		{"integers are never rounded", `{"size":9007199254740993,"small":1e17}`, []string{
			`spec.size: Invalid value: 9007199254740993: must be less than or equal to 1000`,
			`spec.small: Invalid value: "number": must be of type integer`,
			`spec.small: Invalid value: 1e17: must be between -2147483648 and 2147483647, inclusive`,
		}},
		{"bounds", `{"size":0,"small":3000000000,"over":0.50,"under":3,"ratio":0.30,"single":1e300}`, []string{
			`spec.size: Invalid value: 0: must be greater than or equal to 1`,
			`spec.small: Invalid value: 3000000000: must be between -2147483648 and 2147483647, inclusive`,
			`spec.over: Invalid value: 0.50: must be greater than 0.5`,
			`spec.under: Invalid value: 3: must be less than 2.5`,
			`spec.ratio: Invalid value: 0.30: must be a multiple of 0.5`,
			`spec.single: Invalid value: 1e300: must be within the range of the format 'float'`,
		}},
		{"integers and bounds that are none", `{"size":1,"over":0,"under":2,"ratio":1}`,
			[]string{`spec.over: Invalid value: 0: must be greater than 0.5`}},
		{"strings", `{"size":1,"color":"A","mode":"ajar","when":"yesterday"}`, []string{
			`spec.color: Invalid value: "A": must be at least 2 characters`,
			`spec.color: Invalid value: "A": must match the regular expression '^[a-z]+$'`,
			`spec.mode: Unsupported value: "ajar": supported values: "open", "locked"`,
			`spec.when: Invalid value: "yesterday": must be a valid 'date-time'`,
		}},
		{"lengths are of characters", `{"size":1,"color":"aaaaaaaaa","labels":{"a":"é"}}`,
			[]string{`spec.color: Too long: must be at most 8 characters`}},
		{"int or string", `{"size":1,"port":true}`,
			[]string{`spec.port: Invalid value: "boolean": must be of type integer or string`}},
		{"null", `{"size":null,"none":null,"mode":null}`, []string{
			`spec.size: Invalid value: "null": must be of type integer`,
			`spec.mode: Invalid value: "null": must be of type string`,
			`spec.mode: Unsupported value: null: supported values: "open", "locked"`,
		}},
		{"lists", `{"size":1,"tags":["a","b","a",1,"a"],"parts":[{"name":"a"},{"name":"b"},{"weight":1},{"name":"a"}]}`, []string{
			`spec.tags: Too many: 5: must have at most 4 items`,
			`spec.tags[2]: Duplicate value: "a"`,
			`spec.tags[3]: Invalid value: "integer": must be of type string`,
			`spec.parts[2].name: Required value`,
			`spec.parts[3]: Duplicate value: {"name":"a"}`,
		}},
		{"too few", `{"size":1,"tags":[],"labels":{}}`, []string{
			`spec.tags: Invalid value: 0: must have at least 1 item`,
			`spec.labels: Invalid value: 0: must have at least 1 property`,
		}},
		{"two keys", `{"size":1,"pairs":[{"a":"x","b":1},{"a":"x","b":2},{"a":"x","b":1.0}]}`,
			[]string{`spec.pairs[2]: Duplicate value: {"a":"x","b":1.0}`}},
		{"what is no item of a map", `{"size":1,"parts":[{"name":"a"},"a",{"name":"a"}]}`, []string{
			`spec.parts[1]: Invalid value: "a": must be an object in a list of type map`,
			`spec.parts[1]: Invalid value: "string": must be of type object`,
		}},
		{"maps", `{"size":1,"labels":{"example.com/x":"","b":1,"c":"c"},"closed":{"z":1}}`, []string{
			`spec.labels: Too many: 3: must have at most 2 properties`,
			`spec.labels[example.com/x]: Invalid value: "": must be at least 1 character`,
			`spec.labels[b]: Invalid value: "integer": must be of type string`,
			`spec.closed: Invalid value: "z": may not be set: the schema allows no other properties than its own`,
		}},
		{"oneOf, none", `{"size":1,"choice":{"c":"c"}}`, []string{
			"spec.choice: Invalid value: must have exactly one of `a` and `b`, and has none",
			`spec.choice.a: Required value`,
		}},
		{"oneOf, two", `{"size":1,"choice":{"a":"a","b":"b"}}`,
			[]string{"spec.choice: Invalid value: must have exactly one of `a` and `b`, and has 2"}},
		{"anyOf explains the closest", `{"size":1,"some":{"a":1,"b":"b"}}`, []string{
			`spec.some: Invalid value: must match at least one of the alternatives in 'anyOf'`,
			`spec.some.a: Invalid value: 1: must be greater than or equal to 5`,
		}},
		{"allOf", `{"size":1,"both":3}`, []string{
			`spec.both: Invalid value: 3: must be greater than or equal to 5`,
			`spec.both: Invalid value: 3: must be a multiple of 2`,
		}},
		{"not", `{"size":1,"both":8}`, []string{`spec.both: Invalid value: must not match the schema in 'not'`}},
		{"embedded resources", `{"size":1,"tpl":{"apiVersion":"a/b/c","kind":"-","metadata":{"name":"a/b","labels":{"b d":"x"}}}}`, []string{
			`spec.tpl.apiVersion: Invalid value: "a/b/c": must be '<group>/<version>' or '<version>'`,
			`spec.tpl.kind: Invalid value: "-": may have mixed case, but must otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`,
			`spec.tpl.metadata.name: Invalid value: "a/b": may not contain '/'`,
			`spec.tpl.metadata.labels: Invalid value: "b d": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
		}},
		{"embedded resources, incomplete", `{"size":1,"tpl":{"metadata":{}}}`,
			[]string{"spec.tpl.apiVersion: Required value", "spec.tpl.kind: Required value"}},
		{"in document order", `{"on":1,"mode":"x","size":0}`, []string{
			`spec.on: Invalid value: "integer": must be of type boolean`,
			`spec.mode: Unsupported value: "x": supported values: "open", "locked"`,
			`spec.size: Invalid value: 0: must be greater than or equal to 1`,
		}},
		{"escapes", `{"siz\u0065":0,"mode":"\u006fpen","color":"\u0041\u0041"}`, []string{
			`spec.size: Invalid value: 0: must be greater than or equal to 1`,
			`spec.color: Invalid value: "AA": must match the regular expression '^[a-z]+$'`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.Validate(nil, parsed(t, `{`+head+`,"spec":`+c.spec+`}`).Root(), document.Node{})
			var got []string
			for _, err := range r.Errors {
				got = append(got, err.Error())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if r.Valid() != (len(c.want) == 0) {
				t.Errorf("got valid %v", r.Valid())
			}
		})
	}
}

// META-2: metadata of the object itself.
func TestValidateMetadata(t *testing.T) {
	s := compiled(t, `{type: object}`)
	const label = `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`
	for object, want := range map[string][]string{
		`{"metadata":{"name":"w"}}`:                      nil,
		`{"metadata":{"generateName":"w-"}}`:             nil,
		`{"metadata":{"name":"w","namespace":"team-a"}}`: nil,
		`{}`:                         {"metadata.name: Required value: name or generateName is required"},
		`{"metadata":{"labels":{}}}`: {"metadata.name: Required value: name or generateName is required"},
		`{"metadata":{"name":"w","labels":{"a":"b c"}}}`: {`metadata.labels: Invalid value: "b c": ` + label},
		`{"metadata":{"name":"w","finalizers":["orphan","foregroundDeletion"]}}`: {
			`metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion may not be set both`},
		`{"metadata":{"name":"w","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a"}]}}`: {`metadata.ownerReferences[0].uid: Required value: must not be empty`},
		`{"metadata":{"name":"w","annotations":{"a":"` + strings.Repeat("x", 1<<18) +
			`"}}}`: {`metadata.annotations: Too long: may not be more than 262144 bytes`},
	} {
		r := s.Validate(nil, parsed(t, object).Root(), document.Node{})
		var got []string
		for _, err := range r.Errors {
			got = append(got, err.Error())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%.100s\n got %q\nwant %q", object, got, want)
		}
	}
}

const ruleSpec = `{type: object, x-kubernetes-validations: [
	{rule: "self.size <= self.max", messageExpression: "has(self.color) ? 'too big for a ' + self.color + ' widget' : ''", message: "size must not exceed max", fieldPath: .size, reason: FieldValueForbidden},
	{rule: "!has(self.mode) || self.mode != 'locked'"}], properties: {
	size: {type: integer, minimum: 1}, max: {type: integer, default: 100}, color: {type: string}, mode: {type: string, enum: [open, locked]},
	owner: {type: string, x-kubernetes-validations: [{rule: "self == oldSelf", message: "owner is immutable"}]},
	once: {type: string, x-kubernetes-validations: [{rule: "!oldSelf.hasValue() || self == oldSelf.value()", optionalOldSelf: true, message: "may be set once", reason: FieldValueDuplicate}]},
	parts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, weight: {type: integer,
		x-kubernetes-validations: [{rule: "self >= oldSelf", message: "must not get lighter"}, {rule: "self < 10", message: "must be light"}]}}}},
	labels: {type: object, additionalProperties: {type: string, x-kubernetes-validations: [{rule: "self != 'x'", message: "must not be 'x'", reason: FieldValueRequired}]}}}}`

func TestValidateRules(t *testing.T) {
	s := compiled(t, ruleSpec)
	if !s.HasRules() || !s.NeedsOld() {
		t.Errorf("got rules %v, old %v", s.HasRules(), s.NeedsOld())
	}
	const skipped = `<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`
	for _, c := range []struct {
		name, spec, old string
		want, warnings  []string
	}{
		{"valid", `{"size":1,"max":2}`, "", nil, nil},
		{"message expression and field path", `{"size":3,"max":2,"color":"red"}`, "",
			[]string{`spec.size: Forbidden: too big for a red widget`}, nil},
		{"message", `{"size":3,"max":2}`, "", []string{`spec.size: Forbidden: size must not exceed max`}, nil},
		{"the rule itself", `{"size":1,"max":2,"mode":"locked"}`, "",
			[]string{`spec.mode: Invalid value: "locked": must not be 'locked'`}, nil},
		{"an error", `{"size":3}`, "", []string{`spec: Invalid value: "object": no such key: max evaluating rule: size must not exceed max`}, nil},
		{"keys of maps", `{"size":1,"max":2,"labels":{"a":"x"}}`, "",
			[]string{`spec.labels[a]: Required value: must not be 'x'`}, nil},
		{"skipped when something is of a wrong type", `{"size":"1","mode":"locked"}`, "",
			[]string{`spec.size: Invalid value: "string": must be of type integer`, skipped}, nil},
		{"not skipped for a bound, and in document order",
			`{"parts":[{"name":"a","weight":11}],"size":0,"max":2,"labels":{"a":"x"}}`, "", []string{
				`spec.parts[0].weight: Invalid value: 11: must be light`,
				`spec.size: Invalid value: 0: must be greater than or equal to 1`,
				`spec.labels[a]: Required value: must not be 'x'`,
			}, nil},
		{"transitions need an old value", `{"size":1,"max":2,"owner":"a"}`, `{"size":1,"max":2}`, nil, nil},
		{"transitions", `{"size":1,"max":2,"owner":"b"}`, `{"owner":"a","size":1,"max":2}`,
			[]string{`spec.owner: Invalid value: "b": owner is immutable`}, nil},
		{"optional old values", `{"size":1,"max":2,"once":"b"}`, `{"once":"a","size":1,"max":2}`,
			[]string{`spec.once: Duplicate value: "b"`}, nil},
		{"items find their predecessors by key",
			`{"size":1,"max":2,"parts":[{"name":"b","weight":1},{"name":"a","weight":3}]}`,
			`{"size":1,"max":2,"parts":[{"name":"a","weight":2},{"name":"b","weight":2}]}`,
			[]string{`spec.parts[0].weight: Invalid value: 1: must not get lighter`}, nil},
		{"unchanged values are ratcheted", `{"size":1,"max":3,"parts":[{"name":"a","weight":11}],"mode":"open"}`,
			`{"size":1,"max":2,"parts":[{"name":"a","weight":11}]}`, nil,
			[]string{`spec.parts[0].weight: Invalid value: 11: must be light`}},
		{"also numbers that the schema refuses", `{"size":0,"max":3}`, `{"size":0,"max":2}`, nil, nil},
		{"changed ones are not", `{"size":-1,"max":3}`, `{"size":0,"max":2}`,
			[]string{`spec.size: Invalid value: -1: must be greater than or equal to 1`}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			frame := cel.NewFrame(t.Context())
			defer frame.Release()
			var old document.Node
			if c.old != "" {
				old = parsed(t, `{`+head+`,"spec":`+c.old+`}`).Root()
			}
			r := s.Validate(frame, parsed(t, `{`+head+`,"spec":`+c.spec+`}`).Root(), old)
			var got []string
			for _, err := range r.Errors {
				got = append(got, err.Error())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if !slices.Equal(r.Warnings, c.warnings) {
				t.Errorf("warnings: got %q, want %q", r.Warnings, c.warnings)
			}
		})
	}
}

// The cost of rules is counted as they run; a frame whose request is over ends them.
func TestRulesEnd(t *testing.T) {
	s := compiled(t, `{type: object, properties: {list: {type: array, items: {type: string}, x-kubernetes-validations: [{rule: "self.all(a, self.all(b, self.all(c, a + b + c != 'x')))", message: "must end"}]}}}`)
	d := parsed(t, `{`+head+`,"spec":{"list":[`+strings.TrimSuffix(strings.Repeat(`"a",`, 1000), ",")+`]}}`)
	frame := cel.NewFrame(t.Context())
	defer frame.Release()
	r := s.Validate(frame, d.Root(), document.Node{})
	want := `spec.list: Invalid value: "array": 'operation cancelled: actual cost limit exceeded; shorten it, which has 1000 items': no further validation rules will be run due to call cost exceeds limit for rule: must end`
	if len(r.Errors) != 1 || r.Errors[0].Error() != want || r.Err != nil {
		t.Errorf("got %v, %v", r.Errors, r.Err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	over := cel.NewFrame(ctx)
	defer over.Release()
	if r := s.Validate(over, d.Root(), document.Node{}); r.Err == nil || r.Valid() {
		t.Errorf("got %+v, want an error", r)
	}
}

func TestScale(t *testing.T) {
	crd := readCRD(t, "testdata/workload-crd.yaml")
	versions, _, errs := schema.CompileCRD(crd)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	s := versions[0].Schema
	frame := cel.NewFrame(t.Context())
	defer frame.Release()
	for status, want := range map[string]string{
		`{"replicas":3}`:          "",
		`{"replicas":-1}`:         `status.replicas: Invalid value: -1: must be greater than or equal to 0`,
		`{"replicas":3000000000}`: `status.replicas: Invalid value: 3000000000: must be less than or equal to 2147483647`,
		`{"replicas":1.0}`:        `status.replicas: Invalid value: "number": must be of type integer`,
	} {
		d := parsed(t, `{"apiVersion":"apps.example.com/v1","kind":"Workload","metadata":{"name":"w"},"spec":{"replicas":1,"maxReplicas":1,"strategy":"Recreate","selector":{"matchLabels":{}},"template":{"containers":[{"name":"a","image":"b:1"}]}},"status":`+status+`}`)
		r := s.Validate(frame, d.Root(), document.Node{})
		got := ""
		if len(r.Errors) > 0 {
			got = r.Errors[0].Error()
		}
		if got != want || len(r.Errors) > 1 {
			t.Errorf("%s: got %v, want %s", status, r.Errors, want)
		}
	}
}

// Long lists are searched through a table, not by comparing everything with everything.
func TestLongLists(t *testing.T) {
	s := compiled(t, validateSpec)
	var tags, parts, pairs []string
	for i := range 3000 {
		tags = append(tags, fmt.Sprintf(`"t%d"`, i))
		parts = append(parts, fmt.Sprintf(`{"weight":%d,"name":"p%d"}`, i, i))
		pairs = append(pairs, fmt.Sprintf(`{"b":%d,"a":"p%d"}`, i%50, i/50))
	}
	tags[2500], tags[2600], parts[2999], pairs[1234] = tags[17], tags[17], parts[0], pairs[1]
	d := parsed(t, `{`+head+`,"spec":{"size":1,"tags":[`+strings.Join(tags, ",")+`],"parts":[`+strings.Join(parts, ",")+
		`],"pairs":[`+strings.Join(pairs, ",")+`]}}`)
	r := s.Validate(nil, d.Root(), document.Node{})
	var got []string
	for _, err := range r.Errors {
		got = append(got, err.Error())
	}
	want := []string{
		`spec.tags: Too many: 3000: must have at most 4 items`,
		`spec.tags[2500]: Duplicate value: "t17"`,
		`spec.parts[2999]: Duplicate value: {"name":"p0"}`,
		`spec.pairs[1234]: Duplicate value: {"a":"p0","b":1}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if r := s.Validate(nil, d.Root(), d.Root()); len(r.Errors) != 0 {
		t.Errorf("unchanged: got %v", r.Errors)
	}
}

// What an object can make us hold and print is bounded; how much more is wrong is counted.
func TestFailuresAreBounded(t *testing.T) {
	s := compiled(t, `{type: object, properties: {list: {type: array, items: {type: integer}}, names: {type: object, additionalProperties: {type: string, pattern: '^a$'}}}}`)
	long := strings.Repeat("x", 1<<20)
	d := parsed(t, `{`+head+`,"spec":{"names":{"`+long+`":"`+long+`"},"list":[`+
		strings.TrimSuffix(strings.Repeat(`"a",`, 100_000), ",")+`]}}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := s.Validate(nil, d.Root(), document.Node{})
	runtime.ReadMemStats(&after)
	if len(r.Errors) != 256 || r.More != 100_001-256 {
		t.Errorf("got %d errors and %d more", len(r.Errors), r.More)
	}
	for _, err := range r.Errors {
		if size := len(err.Error()); size > 2000 {
			t.Errorf("an error of %d bytes: %.100s", size, err.Error())
		}
	}
	if got := r.Errors[255].Field; got != "spec.list[254]" {
		t.Errorf("got %s", got)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
}

// A schema serves many requests at once.
func TestConcurrently(t *testing.T) {
	s := compiled(t, ruleSpec)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			frame := cel.NewFrame(t.Context())
			defer frame.Release()
			for j := range 200 {
				d, err := document.Parse(fmt.Appendf(nil, `{%s,"spec":{"size":%d,"max":%d,"x":1}}`, head, i*j, 500),
					document.Limits{})
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Prune(d, nil); err != nil {
					t.Error(err)
				}
				r := s.Validate(frame, d.Root(), document.Node{})
				want := 0
				if i*j > 500 || i*j < 1 {
					want = 1
				}
				if len(r.Errors) != want {
					t.Errorf("size %d: got %v", i*j, r.Errors)
				}
				d.Release()
			}
		})
	}
	wg.Wait()
}

// Valid objects cost no allocation.
func TestAllocations(t *testing.T) {
	s, _, raw := workload(t, 0, false)
	d := parsed(t, string(raw))
	got := testing.AllocsPerRun(200, func() {
		if err := s.Prune(d, nil); err != nil {
			t.Error(err)
		}
		if r := s.Validate(nil, d.Root(), document.Node{}); !r.Valid() {
			t.Error(r.Errors)
		}
	})
	if got > 0.5 { // the pool may be emptied once in a while
		t.Errorf("got %v allocations", got)
	}
}

// STAT-2: on /status only the status counts.
func TestValidateStatus(t *testing.T) {
	props := definition(t, `{type: object}`)
	root := props.Spec.Versions[0].Schema.OpenAPIV3Schema
	status := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte(`{type: object, required: [phase], properties: {phase: {type: string, enum: [Ready]},
		replicas: {type: integer, x-kubernetes-validations: [{rule: "self >= oldSelf", message: "must not shrink"}]}}}`), status); err != nil {
		t.Fatal(err)
	}
	root.Properties["status"] = *status
	root.Required = []string{"spec"}
	props.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{
		Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
		Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas",
			StatusReplicasPath: ".status.replicas"},
	}
	versions, _, errs := schema.CompileCRD(props)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	s := versions[0].Schema
	for _, c := range []struct {
		object, old string
		want        []string
	}{
		{`{"status":{"phase":"Ready"}}`, "", nil},
		{`{}`, "", nil},
		{`{"spec":1,"status":{"phase":"Ready","replicas":-1}}`, "",
			[]string{`status.replicas: Invalid value: -1: must be greater than or equal to 0`}},
		{`{"status":{"phase":"ready"}}`, "", []string{
			`status.phase: Unsupported value: "ready": supported values: "Ready"`,
			`<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
		}},
		{`{"status":{"phase":"Ready","replicas":1}}`, `{"status":{"phase":"Ready","replicas":2}}`,
			[]string{`status.replicas: Invalid value: 1: must not shrink`}},
	} {
		frame := cel.NewFrame(t.Context())
		var old document.Node
		if c.old != "" {
			old = parsed(t, c.old).Root()
		}
		r := s.ValidateStatus(frame, parsed(t, c.object).Root(), old)
		frame.Release()
		var got []string
		for _, err := range r.Errors {
			got = append(got, err.Error())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.object, got, c.want)
		}
	}
}
