package manifest

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

type sample struct {
	embedded `json:",inline"`
	Name     string             `json:"name"`
	Count    int32              `json:"count"`
	Big      int64              `json:"big"`
	Unsigned uint8              `json:"unsigned"`
	Ratio    float64            `json:"ratio"`
	On       *bool              `json:"enabled"`
	Data     []byte             `json:"data"`
	Items    []item             `json:"items"`
	Map      map[string]item    `json:"map"`
	Any      any                `json:"any"`
	Raw      json.RawMessage    `json:"raw"`
	Time     *time.Time         `json:"time"`
	Either   either             `json:"either"`
	Hidden   string             `json:"-"`
	Pointers map[string]**int32 `json:"pointers"`
}

type embedded struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

type item struct {
	Value string `json:"value"`
}

// either is an item or a list of strings.
type either struct{ raw string }

func (e *either) UnmarshalJSON(data []byte) error { e.raw = string(data); return nil }

func inside(t reflect.Type, isObject bool) (reflect.Type, bool) {
	if t != reflect.TypeFor[either]() {
		return nil, false
	}
	if isObject {
		return reflect.TypeFor[item](), true
	}
	return reflect.TypeFor[[]string](), true
}

func TestDecode(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"everything", "name: x\ncount: 1\nbig: 9007199254740993\nunsigned: 255\nratio: 1.5\nenabled: true\ndata: aGk=\nitems: [{value: a}]\nmap: {b: {value: c}}\nany: [1, {x: y}]\nraw: {a: 1}\ntime: 2024-01-01T00:00:00Z\neither: {value: d}\npointers: {a: 1}\n", ""},
		{"null is as if left out", "name: null\ncount: ~\nitems: [null]\nmap:\n", ""},
		{"letters that are booleans are text where text is asked for", "name: y\nmap: {b: {value: N}}\nenabled: y\n",
			"a.yaml:3: name: must be in quotes: 'y' is read as text here, where kubectl reads 'true', as YAML 1.1 has it\n" +
				"a.yaml:4: map.b.value: must be in quotes: 'N' is read as text here, where kubectl reads 'false', as YAML 1.1 has it"},
		{"unknown fields, all of them", "nmae: x\nitems:\n- {value: a}\n- vale: b\nmap: {a.b: {zzz: 1}}\nName: y\nhidden: z\npoint: {}\n",
			"a.yaml:3: nmae: unknown field; did you mean `name`?\n" +
				"a.yaml:6: items[1].vale: unknown field; did you mean `value`?\n" +
				"a.yaml:7: map[a.b].zzz: unknown field\n" +
				"a.yaml:8: Name: unknown field; did you mean `name`?\n" +
				"a.yaml:9: hidden: unknown field\n" +
				"a.yaml:10: point: unknown field; did you mean `pointers`?"},
		{"wrong types, all of them", "name: 1\ncount: 2147483648\nbig: x\nunsigned: -1\nratio: yes\nenabled: 'true'\ndata: '?'\nitems: {}\nmap: []\ntime: soon\neither: [1]\n",
			"a.yaml:3: name: must be a string, not the number 1\n" +
				"a.yaml:4: count: must be an integer of 32 bits, not the number 2147483648\n" +
				"a.yaml:5: big: must be an integer, not a string\n" +
				"a.yaml:6: unsigned: must be an integer that is not negative, not the number -1\n" +
				"a.yaml:7: ratio: must be a number, not a boolean\n" +
				"a.yaml:8: enabled: must be a boolean, not a string\n" +
				"a.yaml:9: data: must be valid: illegal base64 data at input byte 0\n" +
				"a.yaml:10: items: must be a list, not an object\n" +
				"a.yaml:11: map: must be an object, not a list\n" +
				"a.yaml:12: time: must be valid: parsing time \"soon\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"soon\" as \"2006\"\n" +
				"a.yaml:13: either[0]: must be a string, not the number 1"},
		{"a fraction for an integer", "count: 1.5\n", "a.yaml:3: count: must be an integer, not the number 1.5"},
		{"an unknown field behind a type of its own", "either: {vlaue: a}\n",
			"a.yaml:3: either.vlaue: unknown field; did you mean `value`?"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			objects, errs := Read("a.yaml", []byte("apiVersion: v1\nkind: K\n"+test.in))
			if len(errs) > 0 || len(objects) != 1 {
				t.Fatal(errs)
			}
			var got sample
			var lines []string
			for _, err := range (Decoder{Inside: inside}).Decode(objects[0], &got) {
				lines = append(lines, err.Error())
			}
			if text := strings.Join(lines, "\n"); text != test.want {
				t.Errorf("got\n%s\nwant\n%s", text, test.want)
			}
			if test.want == "" && got.Kind != "K" {
				t.Errorf("nothing was decoded")
			}
		})
	}
}

func TestDecodeKeepsDefaults(t *testing.T) {
	objects, errs := Read("a.yaml", []byte("apiVersion: v1\nkind: K\nitems: [{}, {value: a}]\nbig: 9007199254740993\n"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	got := sample{Name: "default"}
	if errs := (Decoder{}).Decode(objects[0], &got); len(errs) > 0 {
		t.Fatal(errs)
	}
	if got.Name != "default" || got.Big != 9007199254740993 {
		t.Errorf("got %+v", got)
	}
	for path, want := range map[string]string{"items[0]": "default", "items[1]": "a", "items[2]": "default"} {
		i := item{Value: "default"}
		if errs := (Decoder{}).DecodeAt(objects[0], path, &i); len(errs) > 0 || i.Value != want {
			t.Errorf("%s: got %q, %v, want %q", path, i.Value, errs, want)
		}
	}
	var wrong struct{ Value int }
	errs = (Decoder{}).DecodeAt(objects[0], "items[1]", &wrong)
	if len(errs) != 1 || errs[0].Error() != "a.yaml:3: items[1].value: unknown field; did you mean `Value`?" {
		t.Errorf("got %v", errs)
	}
}

func TestDecodeWarnsOfUnknownFields(t *testing.T) {
	objects, errs := Read("a.yaml", []byte("apiVersion: v1\nkind: K\nitems: [{value: a, vlaue: b}]\n"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var got sample
	errs = Decoder{WarnUnknown: true}.Decode(objects[0], &got)
	want := []*Error{{File: "a.yaml", Line: 3, Column: 20, Path: "items[0].vlaue",
		Msg: "unknown field; did you mean `value`?", Warning: true}}
	if !reflect.DeepEqual(errs, want) || len(got.Items) != 1 || got.Items[0].Value != "a" {
		t.Errorf("got %v, %+v", errs, got)
	}
}
