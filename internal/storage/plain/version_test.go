package plain

import (
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// RW-1: a resourceVersion is an opaque, reversible form of the ETag without quotes.
func TestVersionOfETag(t *testing.T) {
	for _, c := range []struct{ etag, version string }{
		{``, ``},
		{`"1"`, `1001`},
		{`"0"`, `1000`},
		{`"99999999999999999"`, `100000000000000999`},
		{`"100000000000000000"`, `_S100000000000000000`},
		{`"18446744073709551616"`, `_S18446744073709551616`},
		{`"01"`, `01`},
		{`"00000000000000000001"`, `_S00000000000000000001`},
		{`""`, `_S`},
		{`"abc-1.2"`, `abc-1.2`},
		{`"a_b"`, `a_5fb`},
		{`"a b/c:é"`, `a_20b_2fc_3a_c3_a9`},
		{`7`, `_B7`},
		{`"`, `_B_22`},
		{`w/"7"`, `_Bw_2f_227_22`},
		{`"a"b"`, `a_22b`},
	} {
		version := string(appendVersion(nil, []byte(c.etag)))
		if version != c.version {
			t.Errorf("%s is version %s, want %s", c.etag, version, c.version)
		}
		if c.etag == "" {
			continue
		}
		if back, ok := appendETag(nil, version); !ok || string(back) != c.etag {
			t.Errorf("version %s is of %s, %v, want %s", version, back, ok, c.etag)
		}
	}
	for _, weak := range []string{`W/"7"`, `W/""`, `W/7`, `W/`} {
		if version := appendVersion(nil, []byte(weak)); len(version) > 0 {
			t.Errorf("the weak ETag %s is version %s", weak, version)
		}
	}
	for _, version := range []string{"_W7", "_W", "_BW_2f7", "", "0", "1", "999", "a_", "a_2", "a_zz", "a_5F", "a b",
		"_Sabc", "_X", "_S7", "a_61", "é", "\"a\""} {
		if etag, ok := appendETag(nil, version); ok {
			t.Errorf("version %q belongs to the ETag %s", version, etag)
		}
	}
}

// Two ETags never have one version, and a version never two ETags.
func FuzzVersionOfETag(f *testing.F) {
	for _, s := range []string{`"1"`, `W/"a"`, `abc`, `"0"`, `""`, `1001`, `_S1`, `"100000000000000999"`,
		`100000000000000999`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if s == "" || len(strong([]byte(s))) == 0 {
			return
		}
		version := string(appendVersion(nil, []byte(s)))
		if etag, ok := appendETag(nil, version); !ok || string(etag) != s {
			t.Errorf("the ETag %q is version %q, which is of %q, %v", s, version, etag, ok)
		}
		if version == "0" || strings.ContainsAny(version, "\" ,") {
			t.Errorf("the ETag %q is version %q", s, version)
		}
		if etag, ok := appendETag(nil, s); ok && string(appendVersion(nil, etag)) != s {
			t.Errorf("version %q is of %q, which is version %q", s, etag, appendVersion(nil, etag))
		}
	})
}

// If the version is in a field it is the same in lists; if the backend gives none, it is made from
// the content.
func TestVersionOf(t *testing.T) {
	field := &resource.Resource{Fields: resource.Fields{Version: resource.FieldPath{"meta", "rev"}}}
	none := &resource.Resource{Backend: resource.Backend{Versions: resource.NoVersions,
		Concurrency: resource.BestEffort}}
	best := &resource.Resource{Backend: resource.Backend{Concurrency: resource.BestEffort}}
	const object = `{"a":[1,{"b":null}],"c":"d"}`
	for _, c := range []struct {
		name         string
		resource     *resource.Resource
		object, etag string
		want         string
	}{
		{"a number in a field", field, `{"meta":{"rev":7}}`, `"9"`, "1007"},
		{"a string in a field", field, `{"meta":{"rev":"a b"}}`, ``, "a_20b"},
		{"no field", field, `{"meta":{}}`, `"9"`, ""},
		{"a field of another type", field, `{"meta":{"rev":[7]}}`, `"9"`, ""},
		{"an ETag", &resource.Resource{}, object, `"9"`, "1009"},
		{"no ETag", &resource.Resource{}, object, ``, ""},
		{"an ETag at best effort", best, object, `"9"`, "1009"},
		{"a weak ETag", &resource.Resource{}, object, `W/"9"`, ""},
		{"a weak ETag at best effort", best, object, `W/"9"`, "106a25c3b1b7dd0a6b0988b40d20e961"},
		{"no ETag at best effort", best, object, ``, "106a25c3b1b7dd0a6b0988b40d20e961"},
		{"content", none, object, `"9"`, "106a25c3b1b7dd0a6b0988b40d20e961"},
		{"content in another spelling", none, "{ \"c\" : \"\\u0064\",\n\"a\":[1,{\"b\":null}] }", ``,
			"106a25c3b1b7dd0a6b0988b40d20e961"},
		{"the backend's own", &resource.Resource{Backend: resource.Backend{Versions: resource.NativeVersions}}, object,
			`"9"`, ""},
	} {
		d, err := document.Parse([]byte(c.object), document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(versionOf(nil, c.resource, d.Root(), []byte(c.etag))); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		d.Release()
	}
	digest := func(text string) string {
		d, err := document.Parse([]byte(text), document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Release()
		return string(appendDigest(nil, d.Root()))
	}
	seen := map[string]string{}
	for _, text := range []string{`{}`, `[]`, `null`, `""`, `"{}"`, `{"a":1}`, `{"a":"1"}`, `{"a":[]}`, `{"a":{}}`,
		`["a",1]`, `[["a"],1]`, `[["a",1]]`, `{"a":1,"b":2}`, `{"a":{"b":2}}`, `"a\",\"b"`, `["a","b"]`} {
		if other, twice := seen[digest(text)]; twice {
			t.Errorf("%s and %s have one digest", text, other)
		}
		seen[digest(text)] = text
	}
}
