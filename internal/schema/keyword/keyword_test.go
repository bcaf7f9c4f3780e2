package keyword

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/pattern"
	"github.com/admission-gateway/gateway/internal/schema/compare"
	"github.com/admission-gateway/gateway/internal/schema/format"
)

func parse(t testing.TB, text string) document.Node {
	t.Helper()
	d, err := document.Parse([]byte(text), document.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d.Root()
}

// failures are all that is wrong with a value by some keywords, as answers say it.
func failures(b Broken, failure Failures, v document.Node) (all []string) {
	n := b.Len()
	for ; b != 0; b = b.Rest() {
		all = append(all, failure(b.First(), field.NewPath("f"), v).Error())
	}
	if n != len(all) {
		all = append(all, "not as many as Len says")
	}
	return all
}

// Each keyword takes its bounds, refuses what is beyond them, and says so with the value, all broken keywords in the
// order of the constants (VAL-3).
func TestText(t *testing.T) {
	expression, err := pattern.New("^[a-zé]*$")
	if err != nil {
		t.Fatal(err)
	}
	any, sized, empty := Text{Least: -1, Most: -1}, Text{Least: 2, Most: 3}, Text{Least: 0, Most: 0}
	all := Text{Least: 12, Most: -1, Pattern: expression, Shown: "^shown$", Format: format.Of("date")}
	for _, c := range []struct {
		rules Text
		value string
		want  []string
	}{
		{any, `""`, nil}, {any, `"\u0000"`, nil},
		{sized, `"a"`, []string{`f: Invalid value: "a": must be at least 2 characters`}},
		{sized, `"é"`, []string{`f: Invalid value: "é": must be at least 2 characters`}},
		{sized, `"ab"`, nil}, {sized, `"éé"`, nil}, {sized, `"éél"`, nil}, {sized, `"😀😀😀"`, nil},
		{sized, `"\u00e9\u00e9\u00e9"`, nil},
		{sized, `"éélé"`, []string{`f: Too long: must be at most 3 characters`}},
		{Text{Least: 2, Most: -1}, `"😀"`, []string{`f: Invalid value: "😀": must be at least 2 characters`}},
		{empty, `""`, nil}, {empty, `"a"`, []string{`f: Too long: must be at most 0 characters`}},
		{all, `"2024-01-01"`, []string{
			`f: Invalid value: "2024-01-01": must be at least 12 characters`,
			`f: Invalid value: "2024-01-01": must match the regular expression '^shown$'`,
		}},
		{all, `"abcdefghijkl"`, []string{`f: Invalid value: "abcdefghijkl": must be a valid 'date'`}},
	} {
		v := parse(t, c.value)
		got := failures(c.rules.Broken(v.Str()), c.rules.Failure, v)
		if !slices.Equal(got, c.want) || c.rules.Takes(v.Str()) != (len(c.want) == 0) {
			t.Errorf("%s by %+v:\n got %q\nwant %q", c.value, c.rules, got, c.want)
		}
	}
}

func TestSize(t *testing.T) {
	sized := Size{Least: 1, Most: 2}
	for _, c := range []struct {
		rules Size
		value string
		want  []string
	}{
		{AnySize, `[]`, nil}, {AnySize, `[1,2,3]`, nil}, {sized, `[1]`, nil}, {sized, `{"a":1,"b":2}`, nil},
		{sized, `[]`, []string{`f: Invalid value: 0: must have at least 1 item`}},
		{sized, `[1,2,3]`, []string{`f: Too many: 3: must have at most 2 items`}},
		{sized, `{}`, []string{`f: Invalid value: 0: must have at least 1 property`}},
		{sized, `{"a":1,"b":2,"c":3}`, []string{`f: Too many: 3: must have at most 2 properties`}},
		{Size{Least: -1, Most: 0}, `[1]`, []string{`f: Too many: 1: must have at most 0 items`}},
	} {
		v := parse(t, c.value)
		if got := failures(c.rules.Broken(v.Len()), c.rules.Failure, v); !slices.Equal(got, c.want) {
			t.Errorf("%s by %+v:\n got %q\nwant %q", c.value, c.rules, got, c.want)
		}
	}
	for _, c := range []struct {
		size  *Size
		isAny bool
		want  document.Size
	}{
		{&AnySize, true, document.Size{Most: 1<<32 - 1}},
		{&Size{Least: 0, Most: -1}, true, document.Size{Most: 1<<32 - 1}},
		{&sized, false, document.Size{Least: 1, Most: 2}},
		{&Size{Least: -1, Most: 0}, false, document.Size{}},
		{&Size{Least: 1 << 40, Most: 1 << 40}, false, document.Size{Least: 1<<32 - 1, Most: 1<<32 - 1}},
	} {
		if got := c.size.Bounds(); got != c.want || c.size.IsAny() != c.isAny {
			t.Errorf("%+v: got %+v, any: %t", c.size, got, c.size.IsAny())
		}
	}
	if got, want := (*Size)(nil).Bounds(), AnySize.Bounds(); got != want {
		t.Errorf("no rules: got %+v, want %+v", got, want)
	}
}

// Numbers of Kubernetes are compared as what it decodes them to, and numbers of documents by their exact values.
func TestNumber(t *testing.T) {
	decoded := func(r Number, least, most float64, isExclusive bool) Number {
		r.Minimum, r.Maximum = &Bound{Value: least, IsExclusive: isExclusive},
			&Bound{Value: most, IsExclusive: isExclusive}
		return r
	}
	exact := func(r Number, least, most string, isExclusive bool) Number {
		r.IsExact = true
		r.Minimum, r.Maximum = ExactBound(parse(t, least), isExclusive), ExactBound(parse(t, most), isExclusive)
		return r
	}
	factor := func(text string) Number {
		f, ok := ExactFactor(parse(t, text))
		if !ok {
			t.Fatalf("%s is no factor", text)
		}
		return Number{IsExact: true, MultipleOf: f}
	}
	int32s, int64s := Number{Low: -1 << 31, High: 1<<31 - 1}, Number{Low: -1 << 63, High: 1<<63 - 1, IsExact: true}
	exactInt32s := int32s
	exactInt32s.IsExact = true
	const outOf32 = `must be between -2147483648 and 2147483647, inclusive`
	for _, c := range []struct {
		name  string
		rules Number
		value string
		want  []string
	}{
		{"no keyword", Number{}, `1e300`, nil},
		{"no keyword, exact", Number{IsExact: true}, `1e300`, nil},
		{"the least", decoded(Number{}, 1, 2, false), `1`, nil},
		{"the greatest", decoded(Number{}, 1, 2, false), `2.0`, nil},
		{"less", decoded(Number{}, 1, 2, false), `0.5`,
			[]string{`f: Invalid value: 0.5: must be greater than or equal to 1`}},
		{"greater", decoded(Number{}, 1, 2, false), `3`,
			[]string{`f: Invalid value: 3: must be less than or equal to 2`}},
		{"an exclusive minimum", decoded(Number{}, 1, 2, true), `1`,
			[]string{`f: Invalid value: 1: must be greater than 1`}},
		{"an exclusive maximum", decoded(Number{}, 1, 2, true), `2`,
			[]string{`f: Invalid value: 2: must be less than 2`}},
		{"a double rounds", decoded(Number{}, 0, 0.1, false), `0.10000000000000000001`, nil},
		{"exact does not", exact(Number{}, "0", "0.1", false), `0.10000000000000000001`,
			[]string{`f: Invalid value: 0.10000000000000000001: must be less than or equal to 0.1`}},
		{"the least, exact", exact(Number{}, "1", "2", false), `1.0`, nil},
		{"an exclusive minimum, exact", exact(Number{}, "1", "2", true), `10e-1`,
			[]string{`f: Invalid value: 10e-1: must be greater than 1`}},
		{"an exclusive maximum, exact", exact(Number{}, "1", "2", true), `2`,
			[]string{`f: Invalid value: 2: must be less than 2`}},
		{"int32", int32s, `-2147483648`, nil},
		{"less than int32", int32s, `-2147483649`, []string{`f: Invalid value: -2147483649: ` + outOf32}},
		{"greater than int32", int32s, `2147483648`, []string{`f: Invalid value: 2147483648: ` + outOf32}},
		{"a fraction is left to the type", int32s, `1.5`, nil},
		{"int32, exact", exactInt32s, `2147483647`, nil},
		{"greater than int32, exact", exactInt32s, `2147483648`, []string{`f: Invalid value: 2147483648: ` + outOf32}},
		{"a fraction is no int32", exactInt32s, `1.5`, []string{`f: Invalid value: 1.5: ` + outOf32}},
		{"int64", int64s, `9223372036854775807`, nil},
		{"greater than int64", int64s, `9223372036854775808`,
			[]string{`f: Invalid value: 9223372036854775808: must be between -9223372036854775808 and 9223372036854775807, inclusive`}},
		{"a fraction of int64 is left to the type", int64s, `1.5`, nil},
		{"float", Number{IsSingle: true}, `3e38`, nil},
		{"not float", Number{IsSingle: true}, `4e38`,
			[]string{`f: Invalid value: 4e38: must be within the range of the format 'float'`}},
		{"not float, exact", Number{IsSingle: true, IsExact: true}, `-4e38`,
			[]string{`f: Invalid value: -4e38: must be within the range of the format 'float'`}},
		{"a multiple", Number{MultipleOf: NewFactor(0.1)}, `0.3`, nil},
		{"nearly a multiple", Number{MultipleOf: NewFactor(0.1)}, `0.30000000000000004`, nil},
		{"no multiple", Number{MultipleOf: NewFactor(2)}, `3`,
			[]string{`f: Invalid value: 3: must be a multiple of 2`}},
		{"a multiple, exact", factor("0.1"), `0.3`, nil},
		{"nearly a multiple, exact", factor("0.1"), `0.30000000000000004`,
			[]string{`f: Invalid value: 0.30000000000000004: must be a multiple of 0.1`}},
		{"all", decoded(Number{Low: -10, High: 10, IsSingle: true, MultipleOf: NewFactor(3)}, 1e40, -1e40, false),
			`1e39`, []string{
				`f: Invalid value: 1e39: must be between -10 and 10, inclusive`,
				`f: Invalid value: 1e39: must be within the range of the format 'float'`,
				`f: Invalid value: 1e39: must be greater than or equal to 1e+40`,
				`f: Invalid value: 1e39: must be less than or equal to -1e+40`,
				`f: Invalid value: 1e39: must be a multiple of 3`,
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := parse(t, c.value)
			if got := failures(c.rules.Broken(v), c.rules.Failure, v); !slices.Equal(got, c.want) {
				t.Errorf("\n got %q\nwant %q", got, c.want)
			}
			if !c.rules.IsExact && c.rules.Takes(compare.NumberOf(v)) != (len(c.want) == 0) {
				t.Error("Takes and Broken do not agree")
			}
		})
	}
	for _, text := range []string{`0`, `-1`, `"1"`} {
		if _, ok := ExactFactor(parse(t, text)); ok {
			t.Errorf("%s is a factor", text)
		}
	}
}

// In enumerations of Kubernetes null is no value, and inside objects and lists an integer is no double. In those of
// documents numbers are equal by their values wherever they stand.
func TestEnum(t *testing.T) {
	list := parse(t, `["a","b","a",1,2.5,true,null,{"n":1,"l":[]}]`)
	var values []document.Node
	for v := list.First(); v.Valid(); v = v.Next() {
		values = append(values, v)
	}
	kubernetes, exact := NewEnum(values), ExactEnum(values, nil)
	if want := []string{"a", "b", "a", "1", "2.5", "true", "null", `{"n":1,"l":[]}`}; !slices.Equal(kubernetes.Shown,
		want) {
		t.Errorf("messages list %q, want %q", kubernetes.Shown, want)
	}
	if want := []string{"a", "b", "1", "2.5", "true", `{"n":1,"l":[]}`}; !slices.Equal(exact.Shown, want) {
		t.Errorf("messages list %q, want %q", exact.Shown, want)
	}
	for _, c := range []struct {
		value             string
		kubernetes, exact bool
	}{
		{`"a"`, true, true}, {`"b"`, true, true}, {`"c"`, false, false}, {`1`, true, true}, {`1.0`, true, true},
		{`2.5`, true, true}, {`25e-1`, true, true},
		{`2`, false, false}, {`2.50000000000000000001`, true, false}, {`true`, true, true}, {`false`, false, false},
		{`null`, false, true},
		{`{"l":[],"n":1}`, true, true}, {`{"l":[],"n":1.0}`, false, true}, {`{"l":[]}`, false, false},
		{`[]`, false, false},
	} {
		has := func(e *Enum) bool {
			v := parse(t, c.value)
			if v.Kind() == document.String {
				return e.HasString(v.Str())
			}
			return e.Has(v)
		}
		if has(kubernetes) != c.kubernetes || has(exact) != c.exact {
			t.Errorf("%s: Kubernetes %t, exact %t", c.value, has(kubernetes), has(exact))
		}
	}
	if and := ExactEnum(nil, exact); and.And != exact {
		t.Error("the enumeration does not hold beside the other one")
	}
}

// Many strings are found by a table.
func TestEnumOfManyStrings(t *testing.T) {
	var values []document.Node
	for _, text := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "a"} {
		values = append(values, parse(t, `"`+text+`"`))
	}
	for _, e := range []*Enum{NewEnum(values), ExactEnum(values, nil)} {
		for _, v := range values {
			if !e.HasString(v.Str()) {
				t.Errorf("%s is not one of the values", v.Str())
			}
		}
		if e.HasString("j") || e.HasString("") {
			t.Error("a string is one of the values that is not listed")
		}
	}
}
