package bundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/admission/rego/bundle"
	"github.com/admission-gateway/gateway/admission/rego/bundle/bundletest"
)

var files = map[string]string{
	".manifest":        `{"revision": "r1", "roots": ["team", "words"]}`,
	"team/deny.rego":   "package team\n\ndeny contains word if some word in data.words.bad\n",
	"words/data.json":  `{"bad": ["urgent"], "n": 12345678901234567890}`,
	"team/a_test.rego": "package team\n\ntest_it if true\n",
}

func options() bundle.Options {
	return bundle.Options{Name: "b", MaxBytes: 1 << 20, MaxFiles: 100}
}

// with returns the files with others instead.
func with(more map[string]string) map[string]string {
	all := map[string]string{}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range more {
		all[name] = text
	}
	return all
}

func TestRead(t *testing.T) {
	b, err := bundle.Read(bundletest.Archive(t, files), options())
	if err != nil {
		t.Fatal(err)
	}
	if b.Revision != "r1" || b.IsDelta() {
		t.Errorf("the revision is %q, a delta %t", b.Revision, b.IsDelta())
	}
	var names []string
	for _, m := range b.Modules() {
		names = append(names, m.File)
		if m.Tests != strings.HasSuffix(m.File, "_test.rego") {
			t.Errorf("%s: tests %t", m.File, m.Tests)
		}
	}
	if got, want := strings.Join(names, " "), "bundle:b/team/a_test.rego bundle:b/team/deny.rego"; got != want {
		t.Errorf("the modules are %s, want %s", got, want)
	}
	expectData(t, b, `{"words":{"bad":["urgent"],"n":12345678901234567890}}`)
	if _, err := rego.Compile(rego.Options{Data: b.Data()}, b.Modules()...); err != nil {
		t.Error(err)
	}
}

func expectData(t *testing.T, b *bundle.Bundle, want string) {
	t.Helper()
	text, err := b.Data().AppendJSON(nil)
	if err != nil || string(text) != want {
		t.Errorf("the data is %s, %v, want %s", text, err, want)
	}
}

// Modules of the manifest's version, or of the one of the options, compile beside others.
func TestVersions(t *testing.T) {
	const old = "package team\n\ndeny[msg] { msg := \"no\" }\n"
	for name, test := range map[string]struct {
		manifest string
		v0       bool
		want     string
	}{
		"none":     {`{"revision": ""}`, false, "rego_parse_error"},
		"option":   {`{"revision": ""}`, true, ""},
		"manifest": {`{"revision": "", "rego_version": 0}`, false, ""},
		"file":     {`{"revision": "", "rego_version": 1, "file_rego_versions": {"/old.rego": 0}}`, false, ""},
	} {
		o := options()
		o.V0 = test.v0
		b, err := bundle.Read(bundletest.Archive(t, map[string]string{".manifest": test.manifest, "old.rego": old}), o)
		if err == nil {
			_, err = rego.Compile(rego.Options{}, b.Modules()...)
		}
		expectError(t, name, err, test.want)
	}
}

func expectError(t *testing.T, name string, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if (want == "") != (got == "") || !strings.Contains(got, want) {
		t.Errorf("%s: the error is %q, want %q", name, got, want)
	}
}

func TestBroken(t *testing.T) {
	whole := bundletest.Archive(t, files)
	many := map[string]string{}
	for i := range 200 {
		many[strings.Repeat("d/", i%3)+string(rune('a'+i%26))+strings.Repeat("x", i)+".rego"] = "package x\n"
	}
	for _, test := range []struct {
		name    string
		archive []byte
		want    string
	}{
		{"whole", whole, ""},
		{"empty", nil, "must be an archive that gzip compressed: EOF"},
		{"text", []byte("<html>not found</html>"), "must be an archive that gzip compressed: gzip: invalid header"},
		{"half", whole[:len(whole)/2], "must be a whole archive: unexpected EOF"},
		{"without the checksum", whole[:len(whole)-4], "must be a whole archive: unexpected EOF"},
		{"changed", append(append([]byte{}, whole[:len(whole)-6]...), 1, 2, 3, 4, 5, 6),
			"must be a whole archive: gzip: invalid checksum"},
		{"no tar", bundletest.Gzip(t, []byte(strings.Repeat("no", 600))),
			"must be a whole archive: archive/tar: invalid tar header"},
		{"many files", bundletest.Archive(t, many), "must hold at most 100 files"},
		{"large", bundletest.Archive(t, with(map[string]string{"a.bin": strings.Repeat(" ", 1<<20)})),
			"must unpack to at most 1048576 bytes"},
		{"a bomb", bundletest.Gzip(t, make([]byte, 16<<20)), "must unpack to at most 1048576 bytes"},
		{"a bomb at the end", bomb(t), "must unpack to at most 1048576 bytes"},
		{"a module", bundletest.Archive(t, with(map[string]string{"team/b.rego": "package team\n\ndeny contains"})),
			"rego_parse_error"},
		{"data", bundletest.Archive(t, with(map[string]string{"words/data.json": `{"a"`})),
			"bundle load failed on /words/data.json"},
		{"deep data", bundletest.Archive(t,
			with(map[string]string{"words/data.json": `{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) +
				"}"})), "the data: "},
		{"a huge number", bundletest.Archive(t, with(map[string]string{"words/data.json": `{"a": 1e1000000}`})),
			"numbers must be within the range of a double"},
		{"outside its roots", bundletest.Archive(t, with(map[string]string{"other/data.json": `{"a": 1}`})),
			"do not permit data"},
		{"wasm", bundletest.Archive(t, with(map[string]string{"policy.wasm": "\x00asm"})),
			"must not hold policies in WebAssembly"},
		{"signed", bundletest.Signed(t, files, bundletest.Signature{}), "verification key not provided"},
	} {
		_, err := bundle.Read(test.archive, options())
		expectError(t, test.name, err, test.want)
	}
}

// bomb is an archive that goes on after its last file.
func bomb(t *testing.T) []byte {
	var plain bytes.Buffer
	w := tar.NewWriter(&plain)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for _, part := range [][]byte{plain.Bytes(), make([]byte, 32<<20)} {
		if _, err := z.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSignatures(t *testing.T) {
	private, public := bundletest.Keys(t)
	other, _ := bundletest.Keys(t)
	key := bundle.Key{Algorithm: "RS256", Text: public, Scope: "write"}
	signing := func(change func(s *bundle.Signing)) *bundle.Signing {
		s := &bundle.Signing{Keys: map[string]bundle.Key{"k1": key}}
		if change != nil {
			change(s)
		}
		return s
	}
	good := bundletest.Signature{Key: private, KeyID: "k1", Scope: "write"}
	signature := func(change func(s *bundletest.Signature)) []byte {
		s := good
		change(&s)
		return bundletest.Signed(t, files, s)
	}
	signed := bundletest.Signed(t, files, good)
	for _, test := range []struct {
		name    string
		archive []byte
		signing *bundle.Signing
		want    string
	}{
		{"good", signed, signing(nil), ""},
		{"named key", signed, signing(func(s *bundle.Signing) { s.KeyID = "k1" }), ""},
		{"unsigned", bundletest.Archive(t, files), signing(nil), "missing .signatures.json"},
		{"another key", signature(func(s *bundletest.Signature) { s.Key = other }), signing(nil),
			"failed to verify JWT signature"},
		{"unknown key", signature(func(s *bundletest.Signature) { s.KeyID = "k2" }), signing(nil),
			"verification key corresponding to ID k2 not found"},
		{"another scope", signature(func(s *bundletest.Signature) { s.Scope = "read" }), signing(nil),
			"scope mismatch"},
		{"the signing's scope", signed, signing(func(s *bundle.Signing) { s.Scope = "admin" }), "scope mismatch"},
		// A public key is no secret: it must not verify what was signed by an HMAC of it.
		{"another algorithm", signature(func(s *bundletest.Signature) { s.Key, s.Algorithm = public, "HS256" }),
			signing(nil), "failed to verify JWT signature"},
		{"changed", bundletest.Changed(t, signed, "data.json", `{"words": {"bad": []}}`), signing(nil),
			"digest mismatch"},
		{"more", bundletest.Changed(t, signed, "words/more.rego", "package words\n"), signing(nil),
			"not included in bundle signature"},
		{"excluded", bundletest.Changed(t, signed, "words/more.rego", "package words\n"),
			signing(func(s *bundle.Signing) { s.Exclude = []string{"words/more.rego"} }), ""},
		{"less", bundletest.Changed(t, signed, "team/deny.rego", ""), signing(nil), "not found in the target bundle"},
		{"delta", delta(t), signing(nil), "delta bundles do not support signature verification"},
	} {
		o := options()
		o.Signing = test.signing
		_, err := bundle.Read(test.archive, o)
		expectError(t, test.name, err, test.want)
	}
}

func TestKeys(t *testing.T) {
	private, public := bundletest.Keys(t)
	for _, test := range []struct {
		name string
		key  bundle.Key
		want string
	}{
		{"public", bundle.Key{Algorithm: "RS256", Text: public}, ""},
		{"private", bundle.Key{Algorithm: "RS256", Text: private},
			"must be a public key or a certificate, not 'RSA PRIVATE KEY'"},
		{"secret", bundle.Key{Algorithm: "HS256", Text: "s"}, ""},
		{"no text", bundle.Key{Algorithm: "HS256"}, "must have an algorithm and a text"},
		{"no PEM", bundle.Key{Algorithm: "RS256", Text: "s"}, "must be a public key or a certificate in PEM"},
	} {
		expectError(t, test.name, test.key.Validate(), test.want)
	}
}

func delta(t *testing.T) []byte {
	return bundletest.Archive(t, map[string]string{
		".manifest": `{"revision": "r2", "roots": ["team", "words"]}`,
		"patch.json": `{"data": [{"op": "upsert", "path": "/words/bad/0", "value": "late"},
			{"op": "upsert", "path": "/words/more/deep", "value": {"a": 1}}, {"op": "remove", "path": "/words/n"}]}`,
	})
}

func TestDelta(t *testing.T) {
	before, err := bundle.Read(bundletest.Archive(t, files), options())
	if err != nil {
		t.Fatal(err)
	}
	change, err := bundle.Read(delta(t), options())
	if err != nil {
		t.Fatal(err)
	}
	if !change.IsDelta() {
		t.Fatal("a delta is none")
	}
	after, err := before.Patched(change, options())
	if err != nil {
		t.Fatal(err)
	}
	if after.Revision != "r2" || after.Sum == before.Sum || len(after.Modules()) != len(before.Modules()) {
		t.Errorf("the revision is %q, the sum %s", after.Revision, after.Sum)
	}
	expectData(t, after, `{"words":{"bad":["late","urgent"],"more":{"deep":{"a":1}}}}`)
	expectData(t, before, `{"words":{"bad":["urgent"],"n":12345678901234567890}}`)

	for name, test := range map[string][2]string{
		"other roots": {`{"revision": "r3", "roots": ["words"]}`, `{"data": [{"op": "remove", "path": "/words/bad"}]}`},
		"not there": {`{"revision": "r3", "roots": ["team", "words"]}`,
			`{"data": [{"op": "remove", "path": "/words/none"}]}`},
		"no operation": {`{"revision": "r3", "roots": ["team", "words"]}`,
			`{"data": [{"op": "test", "path": "/words/bad"}]}`},
	} {
		wrong, err := bundle.Read(bundletest.Archive(t, map[string]string{".manifest": test[0], "patch.json": test[1]}),
			options())
		if err != nil {
			t.Fatal(name, err)
		}
		_, err = before.Patched(wrong, options())
		expectError(t, name, err, "the delta cannot be applied: ")
	}
}
