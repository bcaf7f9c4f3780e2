package document

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// suiteDir is a folder of recorded suites; the test is skipped without it.
func suiteDir(t *testing.T, name string) string {
	t.Helper()
	base := os.Getenv("SUITES_DIR")
	if base == "" {
		_, file, _, _ := runtime.Caller(0)
		base = filepath.Join(filepath.Dir(file), "..", "..", "..", "shared", "suites")
	}
	dir := filepath.Join(base, name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("recorded suite is not here (set SUITES_DIR): %v", err)
	}
	return dir
}

func mustParse(t testing.TB, text string) *Document {
	t.Helper()
	d, err := Parse([]byte(text), Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

// at follows keys and, for numbers, positions from the root.
func at(t testing.TB, d *Document, steps ...any) Node {
	t.Helper()
	n := d.Root()
	for _, step := range steps {
		ok := false
		switch step := step.(type) {
		case string:
			n, ok = n.Get(step)
		case int:
			n, ok = n.At(step)
		}
		if !ok {
			t.Fatalf("no %v in %s", step, d.AppendTo(nil))
		}
	}
	return n
}

// Each row of "JSON" in the list of hostile input that a parser can decide.
func TestHostileInput(t *testing.T) {
	lone := `escapes of surrogates must come in pairs`
	tests := []struct {
		name, body string
		want       Error // the zero Error: accepted
	}{
		{"duplicate key", `{"kind":"A","metadata":{"name":"a"},"kind":"B"}`,
			Error{36, "kind", Duplicate, "duplicate key 'kind'"}},
		{"duplicate key in a list item", `{"spec":{"items":[{},{"name":1,"name":2}]}}`,
			Error{31, "spec.items[1].name", Duplicate, "duplicate key 'name'"}},
		{"duplicate key, escaped second", `{"kind":1,"ki\u006ed":2}`,
			Error{10, "kind", Duplicate, "duplicate key 'kind'"}},
		{"duplicate key, escaped first", `{"ki\u006Ed":1,"kind":2}`,
			Error{15, "kind", Duplicate, "duplicate key 'kind'"}},
		{"duplicate key, escaped twice", `{"\u006bind":1,"k\u0069nd":2}`,
			Error{15, "kind", Duplicate, "duplicate key 'kind'"}},
		{"duplicate key with a slash", `{"labels":{"example.com/x":"","example.com\/x":""}}`,
			Error{30, "labels[example.com/x]", Duplicate, "duplicate key 'example.com/x'"}},
		{"duplicate key beyond ASCII", `{"ü":1,"\u00fc":2}`,
			Error{8, "[ü]", Duplicate, "duplicate key 'ü'"}},
		{"duplicate key of two surrogates", `{"😀":1,"\ud83d\ude00":2}`,
			Error{10, "[😀]", Duplicate, "duplicate key '😀'"}},
		{"duplicate empty key", `{"":1,"":2}`,
			Error{6, `[""]`, Duplicate, "duplicate key ''"}},
		{"same key in two objects", `[{"a":1},{"a":{"a":2}}]`, Error{}},
		{"keys that differ in composition", `{"\u00e9":1,"e\u0301":2}`, Error{}},
		{"keys that differ in case", `{"kind":1,"Kind":2}`, Error{}},

		{"invalid UTF-8", "{\"a\":\"\xff\"}", Error{6, "a", Encoding, "strings must be valid UTF-8"}},
		{"invalid UTF-8 in a key", "{\"b\":{\"a\xc3\":1}}", Error{8, "b", Encoding, "strings must be valid UTF-8"}},
		{"overlong UTF-8", "[\"abcdefghijkl\xc0\xaf\"]", Error{14, "[0]", Encoding, "strings must be valid UTF-8"}},
		{"UTF-8 surrogate", "[\"\xed\xa0\x80\"]", Error{2, "[0]", Encoding, "strings must be valid UTF-8"}},
		{"UTF-8 beyond Unicode", "[\"\xf4\x90\x80\x80\"]", Error{2, "[0]", Encoding, "strings must be valid UTF-8"}},
		{"UTF-8 cut off", "[\"\xe2\x82\"]", Error{2, "[0]", Encoding, "strings must be valid UTF-8"}},
		{"lone high surrogate", `["\ud83d"]`, Error{2, "[0]", Encoding, lone}},
		{"lone low surrogate", `["\ude00"]`, Error{2, "[0]", Encoding, lone}},
		{"high surrogate twice", `["\ud83d\ud83d"]`, Error{2, "[0]", Encoding, lone}},
		{"surrogates in the wrong order", `["\ude00\ud83d"]`, Error{2, "[0]", Encoding, lone}},
		{"lone surrogate in a key", `{"\udc00":1}`, Error{2, "", Encoding, lone}},
		{"surrogate pair", `["\ud83d\uDE00"]`, Error{}},
		{"BOM", "\ufeff{}", Error{0, "", Encoding, "document must not begin with a byte order mark"}},
		{"UTF-16 with BOM", "\xff\xfe{\x00}\x00",
			Error{0, "", Encoding, "document must not begin with a byte order mark"}},
		{"UTF-16, little-endian", "{\x00}\x00",
			Error{1, "", Syntax, `unexpected character '\x00', a key in double quotes must stand here`}},
		{"UTF-16, big-endian", "\x00{\x00}", Error{0, "", Encoding, "document must be encoded as UTF-8"}},

		{"NUL in a key", `{"a":[{"b\u0000":1}]}`, Error{8, "a[0]", Encoding, `keys must not contain '\u0000'`}},
		{"NUL in a string", `{"a":"\u0000"}`, Error{}},
		{"raw NUL in a string", "{\"a\":\"\x00\"}",
			Error{6, "a", Syntax, "control characters in strings must be escaped"}},
		{"raw newline in a string", "[\"abcdefgh\n\"]",
			Error{10, "[0]", Syntax, "control characters in strings must be escaped"}},
		{"raw control character in a key", "{\"\x1f\":1}",
			Error{2, "", Syntax, "control characters in strings must be escaped"}},
		{"raw DEL in a string", "[\"\x7f\"]", Error{}},

		{"integer beyond int64", `[9223372036854775808,-9223372036854775809]`, Error{}},
		{"2^53+1", `9007199254740993`, Error{}},
		{"fractions and exponents", `[1.0,1e0,-0,-0.0,1E+2,0e-5]`, Error{}},
		{"number beyond a double", `{"a":1e400}`, Error{5, "a", Range, "numbers must be within the range of a double"}},
		{"long number beyond a double", `[` + strings.Repeat("9", 310) + `]`,
			Error{1, "[0]", Range, "numbers must be within the range of a double"}},
		{"number below a double", `1e-400`, Error{}},
		{"zero with a large exponent", `0e999`, Error{}},
		{"very long exponent", `1e-1234567890`,
			Error{3, "", Range, "exponents must be less than or equal to 9 digits long"}},

		{"depth 64", strings.Repeat("[", 64) + strings.Repeat("]", 64), Error{}},
		{"depth 65", strings.Repeat("[", 65) + strings.Repeat("]", 65),
			Error{64, strings.Repeat("[0]", 64), TooDeep, "depth of nesting must be less than or equal to 64"}},
		{"depth 65 of objects", strings.Repeat(`{"a":`, 64) + "{}" + strings.Repeat("}", 64),
			Error{320, "a" + strings.Repeat(".a", 63), TooDeep, "depth of nesting must be less than or equal to 64"}},
		{"more values than 2^20", "[" + strings.Repeat("0,", 1<<20) + "0]",
			Error{1 + 2*(1<<20-1), "", TooManyNodes, "number of values must be less than or equal to 1048576"}},
		{"more than 3 MiB", `"` + strings.Repeat("a", 3<<20) + `"`,
			Error{3 << 20, "", TooLarge, "document must be less than or equal to 3145728 bytes long"}},

		{"two documents", `{}{}`,
			Error{2, "", Syntax, "unexpected character '{', the end of the document must stand here"}},
		{"trailing comma after the document", `{},`,
			Error{2, "", Syntax, "unexpected character ',', the end of the document must stand here"}},
		{"trailing NUL", "{}\x00",
			Error{2, "", Syntax, `unexpected character '\x00', the end of the document must stand here`}},
		{"trailing white space", "{} \r\n\t", Error{}},
		{"empty", ``, Error{0, "", Syntax, "document must not be empty"}},
		{"white space alone", " \n ", Error{3, "", Syntax, "document must not be empty"}},
		{"null", `null`, Error{}},
		{"list", `[]`, Error{}},

		{"leading zero", `{"a":{"b":[0,01]}}`, Error{13, "a.b[1]", Syntax, "numbers must not have leading zeros"}},
		{"leading zero after a minus", `-012`, Error{1, "", Syntax, "numbers must not have leading zeros"}},
		{"plus", `+1`, Error{0, "", Syntax, "unexpected character '+', a value must stand here"}},
		{"no digit after the point", `1.`,
			Error{2, "", Syntax, "unexpected end of the document, a digit must stand here"}},
		{"no digit before the point", `.5`, Error{0, "", Syntax, "unexpected character '.', a value must stand here"}},
		{"no digit after the minus", `[-]`,
			Error{2, "[0]", Syntax, "unexpected character ']', a digit must stand here"}},
		{"no digit in the exponent", `[1e+]`,
			Error{4, "[0]", Syntax, "unexpected character ']', a digit must stand here"}},
		{"NaN", `NaN`, Error{0, "", Syntax, "unexpected character 'N', a value must stand here"}},
		{"Infinity", `-Infinity`, Error{1, "", Syntax, "unexpected character 'I', a digit must stand here"}},
		{"hexadecimal", `0x10`, Error{1, "", Syntax,
			"unexpected character 'x', the end of the document must stand here"}},
		{"upper-case literal", `[True]`, Error{1, "[0]", Syntax, "unexpected character 'T', a value must stand here"}},
		{"literal cut off", `[tru]`, Error{1, "[0]", Syntax, "unexpected character 't', a value must stand here"}},
		{"literal run on", `[nullx]`, Error{5, "", Syntax, "unexpected character 'x', ',' or ']' must stand here"}},

		{"trailing comma in an object", `{"a":1,}`,
			Error{7, "", Syntax, "unexpected character '}', a key in double quotes must stand here"}},
		{"trailing comma in a list", `[1,]`,
			Error{3, "[1]", Syntax, "unexpected character ']', a value must stand here"}},
		{"double comma", `[1,,2]`, Error{3, "[1]", Syntax, "unexpected character ',', a value must stand here"}},
		{"single quotes", `{'a':1}`,
			Error{1, "", Syntax, "unexpected character ''', a key in double quotes must stand here"}},
		{"unquoted key", `{a:1}`,
			Error{1, "", Syntax, "unexpected character 'a', a key in double quotes must stand here"}},
		{"no colon", `{"a" 1}`, Error{5, "a", Syntax, "unexpected character '1', ':' must stand here"}},
		{"no value", `{"a":}`, Error{5, "a", Syntax, "unexpected character '}', a value must stand here"}},
		{"wrong bracket", `[{"a":1]`, Error{7, "[0]", Syntax, "unexpected character ']', ',' or '}' must stand here"}},
		{"comment", `{/**/}`, Error{1, "", Syntax, "unexpected character '/', a key in double quotes must stand here"}},
		{"form feed", "[\f]", Error{1, "[0]", Syntax, `unexpected character '\f', a value must stand here`}},
		{"no-break space", "[\u00a0]",
			Error{1, "[0]", Syntax, "unexpected character '\\u00a0', a value must stand here"}},
		{"unknown escape", `["\a"]`,
			Error{2, "[0]", Syntax, `a backslash in a string must be followed by one of '"\/bfnrtu'`}},
		{"bad hexadecimal escape", `["\u00g0"]`,
			Error{2, "[0]", Syntax, `'\u' must be followed by four hexadecimal digits`}},

		{"cut off after a brace", `{`,
			Error{1, "", Syntax, "unexpected end of the document, a key in double quotes must stand here"}},
		{"cut off after a bracket", `[`,
			Error{1, "", Syntax, "unexpected end of the document, a value must stand here"}},
		{"cut off in a string", `{"a":"b`, Error{7, "a", Syntax, "unexpected end of the document within a string"}},
		{"cut off in an escape", `["\`, Error{2, "[0]", Syntax, "unexpected end of the document within a string"}},
		{"cut off in a key", `{"a`, Error{3, "", Syntax, "unexpected end of the document within a string"}},
		{"cut off after a key", `{"a"`, Error{4, "a", Syntax, "unexpected end of the document, ':' must stand here"}},
		{"cut off after a colon", `{"a": `,
			Error{6, "a", Syntax, "unexpected end of the document, a value must stand here"}},
		{"cut off after a value", `{"a":1`,
			Error{6, "", Syntax, "unexpected end of the document, ',' or '}' must stand here"}},
		{"cut off after a comma", `[1,`,
			Error{3, "", Syntax, "unexpected end of the document, a value must stand here"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := Parse([]byte(tt.body), Limits{})
			if err == nil {
				if tt.want != (Error{}) {
					t.Fatalf("accepted, want %+v", tt.want)
				}
				if got := string(d.AppendTo(nil)); got != tt.body {
					t.Errorf("printed %q", got)
				}
				d.Release()
				return
			}
			if got := *err.(*Error); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestErrorText(t *testing.T) {
	tests := map[string]string{
		`{"kind":1,"metadata":{"a":1},"kind":2}`: "kind: duplicate key 'kind' at offset 29",
		`[`:                                      "unexpected end of the document, a value must stand here at offset 1",
		`{}]`:                                    "unexpected character ']', the end of the document must stand here at offset 2",
		`{"` + strings.Repeat("é", 90) + `":{"a":1,"a":2}}`: "[" +
			strings.Repeat("é", 32) + "…].a: duplicate key 'a' at offset 191",
		`{"a":{"` + strings.Repeat("k", 70) + `":1,"` + strings.Repeat("k", 70) + `":2}}`: "a." +
			strings.Repeat("k", 64) + "…: duplicate key '" + strings.Repeat("k", 64) + "…' at offset 81",
	}
	for body, want := range tests {
		if _, err := Parse([]byte(body), Limits{}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", body, err, want)
		}
	}
}

func TestLimits(t *testing.T) {
	tests := []struct {
		name, body string
		limits     Limits
		code       ErrorCode
		ok         bool
	}{
		{"bytes at the limit", `[1]`, Limits{Bytes: 3}, 0, true},
		{"bytes", `[1] `, Limits{Bytes: 3}, TooLarge, false},
		{"depth at the limit", `[[1]]`, Limits{Depth: 2}, 0, true},
		{"depth", `[[[]]]`, Limits{Depth: 2}, TooDeep, false},
		{"depth of siblings", `[[],[],[[]],{"a":[]}]`, Limits{Depth: 3}, 0, true},
		{"one node", `1`, Limits{Nodes: 1}, 0, true},
		{"nodes at the limit", `[1,2,{}]`, Limits{Nodes: 4}, 0, true},
		{"nodes", `[1,2,{"a":1}]`, Limits{Nodes: 4}, TooManyNodes, false},
		{"many nodes at the limit", "[" + strings.Repeat("1,", 999) + "1]", Limits{Nodes: 1001}, 0, true},
		{"many nodes", "[" + strings.Repeat("1,", 999) + "1]", Limits{Nodes: 1000}, TooManyNodes, false},
		{"deeper than the first stack", strings.Repeat("[", 5000) + strings.Repeat("]", 5000), Limits{Depth: 5000}, 0,
			true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := Parse([]byte(tt.body), tt.limits)
			if tt.ok {
				if err != nil {
					t.Fatal(err)
				}
				d.Release()
				return
			}
			if err == nil || err.(*Error).Code != tt.code {
				t.Errorf("got %v, want code %d", err, tt.code)
			}
		})
	}
}

// stricter names the texts of the suite's accepted part that this package
// refuses on purpose, and why.
var stricter = map[string]ErrorCode{
	"y_object_duplicated_key.json":           Duplicate,
	"y_object_duplicated_key_and_value.json": Duplicate,
	"y_object_escaped_null_in_key.json":      Encoding,
}

// undecided pins the texts that a parser may accept or refuse.
var undecided = map[string]bool{
	"i_number_double_huge_neg_exp.json":                   true,
	"i_number_real_underflow.json":                        true,
	"i_number_too_big_neg_int.json":                       true,
	"i_number_too_big_pos_int.json":                       true,
	"i_number_very_big_negative_int.json":                 true,
	"i_number_huge_exp.json":                              false,
	"i_number_neg_int_huge_exp.json":                      false,
	"i_number_pos_double_huge_exp.json":                   false,
	"i_number_real_neg_overflow.json":                     false,
	"i_number_real_pos_overflow.json":                     false,
	"i_object_key_lone_2nd_surrogate.json":                false,
	"i_string_1st_surrogate_but_2nd_missing.json":         false,
	"i_string_1st_valid_surrogate_2nd_invalid.json":       false,
	"i_string_UTF-16LE_with_BOM.json":                     false,
	"i_string_UTF-8_invalid_sequence.json":                false,
	"i_string_UTF8_surrogate_U+D800.json":                 false,
	"i_string_incomplete_surrogate_and_escape_valid.json": false,
	"i_string_incomplete_surrogate_pair.json":             false,
	"i_string_incomplete_surrogates_escape_valid.json":    false,
	"i_string_invalid_lonely_surrogate.json":              false,
	"i_string_invalid_surrogate.json":                     false,
	"i_string_invalid_utf-8.json":                         false,
	"i_string_inverted_surrogates_U+1D11E.json":           false,
	"i_string_iso_latin_1.json":                           false,
	"i_string_lone_second_surrogate.json":                 false,
	"i_string_lone_utf8_continuation_byte.json":           false,
	"i_string_not_in_unicode_range.json":                  false,
	"i_string_overlong_sequence_2_bytes.json":             false,
	"i_string_overlong_sequence_6_bytes.json":             false,
	"i_string_overlong_sequence_6_bytes_null.json":        false,
	"i_string_truncated-utf-8.json":                       false,
	"i_string_utf16BE_no_BOM.json":                        false,
	"i_string_utf16LE_no_BOM.json":                        false,
	"i_structure_500_nested_arrays.json":                  false,
	"i_structure_UTF-8_BOM_empty_object.json":             false,
}

func TestJSONTestSuite(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(suiteDir(t, "data/JSONTestSuite"), "test_parsing", "*.json"))
	if err != nil || len(files) < 300 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	seen := map[byte]int{}
	for _, file := range files {
		name := filepath.Base(file)
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Parse(body, Limits{})
		seen[name[0]]++
		var want bool
		switch name[0] {
		case 'y':
			code, refused := stricter[name]
			if want = !refused; refused && err != nil && err.(*Error).Code != code {
				t.Errorf("%s: %v", name, err)
			}
		case 'n':
			want = false
		default:
			pinned, known := undecided[name]
			if want = pinned; !known {
				t.Errorf("%s: not pinned", name)
			}
		}
		if (err == nil) != want {
			t.Errorf("%s: accepted is %v, want %v (%v)", name, err == nil, want, err)
		}
		if err == nil {
			if got := d.AppendTo(nil); string(got) != string(body) {
				t.Errorf("%s: printed %q", name, got)
			}
			if got, want := decodeTree(d.Root()), decodeReference(t, body); !sameTree(got, want) {
				t.Errorf("%s: read as %v, want %v", name, got, want)
			}
			d.Release()
		}
	}
	t.Logf("%d accepted by the suite, %d refused, %d undecided", seen['y'], seen['n'], seen['i'])
}
