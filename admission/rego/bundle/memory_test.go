package bundle_test

import (
	"archive/tar"
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/admission/rego/bundle"
	"github.com/admission-gateway/gateway/admission/rego/bundle/bundletest"
	"github.com/admission-gateway/gateway/internal/memory"
)

// within returns options with so much memory.
func within(bytes int64) (bundle.Options, *memory.Budget, *memory.Reservation) {
	budget := memory.NewBudget(bytes, 1)
	held := new(memory.Reservation)
	held.Open(budget, nil)
	o := options()
	o.MaxBytes, o.Memory = 64<<20, held
	return o, budget, held
}

// repeated is a text of n parts.
func repeated(before, part string, n int, after string) string {
	return before + strings.Repeat(part, n) + after
}

// TestBombs: what is small as an archive, or as a text, and large as values is refused before it is made.
func TestBombs(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"empty objects", map[string]string{"data.json": repeated(`{"a":[`, "{},", 9_000_000, "0]}")},
			"takes more memory to decode than is left of `limits.bodiesInFlightBytes`"},
		{"numbers", map[string]string{"data.json": repeated(`{"a":[`, "1,", 3_000_000, "0]}")}, "takes more memory"},
		{"lists", map[string]string{"data.json": repeated(`{"a":[`, "[],", 2_000_000, "0]}")}, "takes more memory"},
		{"many values in many files", map[string]string{
			"a/data.json": repeated(`{"a":[`, "{},", 200_000, "0]}"),
			"b/data.json": repeated(`{"a":[`, "{},", 200_000, "0]}"),
			"c/data.json": repeated(`{"a":[`, "{},", 200_000, "0]}"),
			"d/data.json": repeated(`{"a":[`, "{},", 200_000, "0]}"),
		}, "takes more memory"},
		{"YAML", map[string]string{"data.yaml": repeated("a: [", "a,", 3_000_000, "a]\n")}, "takes more memory"},
		{"less YAML", map[string]string{"data.yaml": repeated("a: [", "a,", 1_000_000, "a]\n")}, "takes more memory"},
		{"aliases", map[string]string{"data.yml": repeated("a: &a "+strings.Repeat("x", 1<<20)+"\nb: [", "*a,", 999,
			"0]\n")}, "must mean at most 33554432 bytes of JSON, its aliases replaced"},
		{"nested aliases", map[string]string{"data.yml": "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f,*f]\n"}, "must "},
		{"an alias in itself", map[string]string{"data.yml": "a: &a [*a]\n"},
			"must not use an alias inside the value it stands for"},
		{"a patch", map[string]string{"patch.json": repeated(`{"data":[`, `{},`, 2_000_000, `{}]}`)},
			"takes more memory"},
		{"a patch's value", map[string]string{"patch.json": repeated(`{"data":[{"op":"upsert","path":"/a","value":[`,
			`{},`, 2_000_000, `0]}]}`)}, "takes more memory"},
		{"a manifest", map[string]string{".manifest": repeated(`{"metadata":{"a":[`, "{},", 2_000_000, "0]}}")},
			"takes more memory"},
		{"roots", map[string]string{".manifest": repeated(`{"roots":[`, `"",`, 2_000_000, `""]}`)},
			"takes more memory"},
		{"signatures", map[string]string{".signatures.json": repeated(`{"signatures":[`, `"",`, 2_000_000, `""]}`)},
			"takes more memory"},
		{"a module", map[string]string{"a.rego": repeated("package a\n\nx := [", "1,", 1_000_000, "1]\n")},
			"takes more memory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			archive := bundletest.Archive(t, test.files)
			o, budget, held := within(64 << 20)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := bundle.Read(archive, o)
			runtime.ReadMemStats(&after)
			expectError(t, test.name, err, test.want)
			// With what the archive unpacks to, and what growing memory was copied from.
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 200<<20 {
				t.Errorf("it took %d bytes", taken)
			}
			if held.Close(); budget.InUse() != 0 {
				t.Errorf("%d bytes are not given back", budget.InUse())
			}
		})
	}
}

// TestSignedBomb: the values of data are made to verify a signature, and asked for too.
func TestSignedBomb(t *testing.T) {
	_, public := bundletest.Keys(t)
	o, _, _ := within(64 << 20)
	o.Signing = &bundle.Signing{Keys: map[string]bundle.Key{"k": {Algorithm: "RS256", Text: public}}}
	_, err := bundle.Read(bundletest.Archive(t,
		map[string]string{"data.json": repeated(`{"a":[`, "{},", 300_000, "0]}")}), o)
	expectError(t, "signed", err, "takes more memory")
}

// TestDeltaWithinMemory: what applying a delta takes is asked for, and given back.
func TestDeltaWithinMemory(t *testing.T) {
	o, budget, held := within(64 << 20)
	before, err := bundle.Read(
		bundletest.Archive(t, map[string]string{".manifest": `{"revision": "r1", "roots": ["words"]}`,
			"words/data.json": repeated(`{"bad":[],"a":[`, "1,", 100_000, "0]}")}), o)
	if err != nil {
		t.Fatal(err)
	}
	change, err := bundle.Read(
		bundletest.Archive(t, map[string]string{".manifest": `{"revision": "r2", "roots": ["words"]}`,
			"patch.json": `{"data": [{"op": "upsert", "path": "/words/bad/-", "value": "late"}]}`}), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := before.Patched(change, o); err != nil {
		t.Errorf("with enough memory: %v", err)
	}
	little := o
	held.Close()
	if budget.InUse() != 0 {
		t.Errorf("%d bytes are not given back", budget.InUse())
	}
	little, _, _ = within(8 << 20)
	_, err = before.Patched(change, little)
	expectError(t, "little memory", err, "takes more memory")
}

// archived is an archive of one file beside another entry.
func archived(t *testing.T, h tar.Header, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, one := range []struct {
		header  tar.Header
		content string
	}{{tar.Header{Name: "/team/deny.rego", Typeflag: tar.TypeReg, Mode: 0o600}, "package team\n"}, {h, content}} {
		one.header.Size = int64(len(one.content))
		if err := w.WriteHeader(&one.header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, one.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return bundletest.Gzip(t, b.Bytes())
}

// TestEntries: a bundle with an entry outside its root, a link, a pipe or a device is refused whole.
func TestEntries(t *testing.T) {
	for _, test := range []struct {
		header tar.Header
		want   string
	}{
		{tar.Header{Name: "data.json"}, ""},
		{tar.Header{Name: "/data.json"}, ""},
		{tar.Header{Name: "./data.json"}, ""},
		{tar.Header{Name: "team/", Typeflag: tar.TypeDir}, ""},
		{tar.Header{Name: "./", Typeflag: tar.TypeDir}, ""},
		{tar.Header{Name: "/", Typeflag: tar.TypeDir}, ""},
		{tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "a commit"}}, ""},
		{tar.Header{Name: "../data.json"}, "must hold nothing outside of its root, such as '../data.json'"},
		{tar.Header{Name: "/../data.json"}, "must hold nothing outside of its root, such as '/../data.json'"},
		{tar.Header{Name: "team/../../data.json"}, "must hold nothing outside of its root"},
		{tar.Header{Name: "team/../data.json"}, "must hold nothing outside of its root"},
		{tar.Header{Name: "..", Typeflag: tar.TypeDir}, "must hold nothing outside of its root, such as '..'"},
		{tar.Header{Name: "//etc/data.json"}, "must name each file by its path from the root, with single slashes, not '//etc/data.json'"},
		{tar.Header{Name: "team//data.json"}, "with single slashes"},
		{tar.Header{Name: "team/./data.json"}, "with single slashes"},
		{tar.Header{Name: `..\data.json`}, "with single slashes"},
		{tar.Header{Name: "./team/deny.rego"}, "must not hold 'team/deny.rego' twice"},
		{tar.Header{Name: "data.json", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
			"must hold nothing but files and folders: 'data.json' is a symbolic link"},
		{tar.Header{Name: "other.rego", Typeflag: tar.TypeLink, Linkname: "/team/deny.rego"},
			"'other.rego' is a hard link"},
		{tar.Header{Name: "data.json", Typeflag: tar.TypeFifo}, "'data.json' is a named pipe"},
		{tar.Header{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, "'null' is a device"},
		{tar.Header{Name: "sda", Typeflag: tar.TypeBlock, Devmajor: 8}, "'sda' is a device"},
		{tar.Header{Name: "x", Typeflag: tar.TypeCont}, "'x' is of the type '7'"},
	} {
		content := ""
		if test.header.Typeflag == 0 {
			test.header.Typeflag, content = tar.TypeReg, "{}"
		}
		b, err := bundle.Read(archived(t, test.header, content), options())
		expectError(t, test.header.Name, err, test.want)
		if test.want != "" && b != nil {
			t.Errorf("%s: the rest is a bundle", test.header.Name)
		}
	}
}

// TestDataFiles: each file has the path of its folder, and no two have different values for one
// path.
func TestDataFiles(t *testing.T) {
	for _, test := range []struct {
		files map[string]string
		want  string // the data, or an error
	}{
		{map[string]string{"a.rego": "package a\n"}, `{}`},
		{map[string]string{"data.json": `{"a": {"b": 1}}`, "a/data.json": `{"c": 2}`,
			"a/d/data.yaml": "e: yes\nf: 0x10\n"}, `{"a":{"b":1,"c":2,"d":{"e":"yes","f":16}}}`},
		{map[string]string{"a/b/data.json": `[1]`, "a/data.yml": "x: &x {y: 1}\nz: {<<: *x, w: 2}\n"},
			`{"a":{"b":[1],"x":{"y":1},"z":{"w":2,"y":1}}}`},
		{map[string]string{"data.json": `{"a": {"b": 1}}`, "a/data.json": `{"b": 2}`},
			"two data files say different things of '/'"},
		{map[string]string{"data.json": `{"a": 1}`, "a/data.json": `{"b": 2}`},
			"two data files say different things of '/'"},
		{map[string]string{"a/data.json": `{"a": 1}`, "a/data.yaml": "a: 2\n"},
			"two data files say different things of '/a/'"},
		{map[string]string{"data.json": `[]`}, "bundle load failed on /data.json: must hold an object, not a list"},
		{map[string]string{"data.json": `{"a": 1, "a": 2}`}, "bundle load failed on /data.json: the data: "},
		{map[string]string{".manifest": `{"roots": ["a/b"]}`, "data.json": `{"a": {"b": {"c": 1}}}`},
			`{"a":{"b":{"c":1}}}`},
		{map[string]string{".manifest": `{"roots": ["a/b"]}`, "data.json": `{"a": {"b": {}, "c": 1}}`},
			"do not permit data at path '/a/c'"},
		{map[string]string{".manifest": `{"roots": ["a/b"]}`, "a/data.json": `{"bb": 1}`},
			"do not permit data at path '/a/bb'"},
		{map[string]string{".manifest": `{"roots": ["a/b"]}`, "a/data.json": `1`}, "do not permit data at path '/a'"},
	} {
		b, err := bundle.Read(bundletest.Archive(t, test.files), options())
		if err != nil || !strings.HasPrefix(test.want, "{") {
			expectError(t, test.want, err, test.want)
			continue
		}
		expectData(t, b, test.want)
	}
}
