package bundles

import (
	"net/http"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/admission-gateway/gateway/admission/rego/bundle"
	"github.com/admission-gateway/gateway/admission/rego/bundle/bundletest"
	"github.com/admission-gateway/gateway/internal/memory"
)

// TestBundlesWithinMemory: an archive, and what is made of it, takes memory of the common budget, and gives it back.
// What there is no memory for leaves the version in force, and is asked for again.
func TestBundlesWithinMemory(t *testing.T) {
	s, url := newServer(t)
	source := fromServer(url)
	source.From.(*Server).MaxBytes = 64 << 20
	k := newKit(source, bundle.Options{})
	f := k.all["b"]
	f.source.Read = func() bundle.Options { return bundle.Options{Name: "b", MaxBytes: 64 << 20, MaxFiles: 100} }
	k.options.Memory = memory.NewBudget(32<<20, 1)
	bomb := bundletest.Archive(t, map[string]string{"data.json": `{"a":[` + strings.Repeat("{},", 9_000_000) + "0]}"})
	for _, step := range []struct {
		name   string
		answer http.HandlerFunc
		err    string
	}{
		{"a bundle", sends(archive(t, "r1"), `"1"`), ""},
		{"small, and large as values", sends(bomb, `"2"`), "bundle load failed on /data.json: takes more memory to decode than is left of `limits.bodiesInFlightBytes`"},
		{"a large archive", sends(make([]byte, 30<<20), `"3"`),
			"the answer takes more memory than is left of `limits.bodiesInFlightBytes`"},
		{"the next bundle", sends(archive(t, "r2"), `"4"`), ""},
	} {
		s.will(step.answer)
		if got := k.update(t); !strings.HasPrefix(got, step.err) || (step.err == "") != (got == "") {
			t.Errorf("%s: %q, want %q", step.name, got, step.err)
		}
		if used := k.options.Memory.InUse(); used != 0 {
			t.Errorf("%s: %d bytes are not given back", step.name, used)
		}
	}
	if got, want := k.said(), "r1 r2 Verify Download"; got != want {
		t.Errorf("it came to %s, want %s", got, want)
	}
}

// TestRegistryWithinMemory: a layer and a manifest take memory of the common budget too, as much as they say that they
// have.
func TestRegistryWithinMemory(t *testing.T) {
	m := newImages(t)
	one := ocispec.Descriptor{MediaType: "text/plain", Digest: digest.FromString("x"), Size: 1}
	many := make([]ocispec.Descriptor, 20_000)
	for i := range many {
		many[i] = one
	}
	for _, test := range []struct {
		name  string
		image ocispec.Descriptor
		bytes int64
		want  string
	}{
		{"a bundle", m.image(t, m.layer(t, "r1")), 8 << 20, ""},
		{"a large layer", m.image(t, m.push(t, ocispec.MediaTypeImageLayerGzip, make([]byte, 7<<20))), 4 << 20,
			"the layer takes more memory than is left of"},
		{"a large manifest", m.image(t, many...), 1 << 20, "the registry did not give the bundle: the manifest takes more memory than is left of"},
		{"a manifest of many values", m.image(t, many...), 4 << 20, "the registry did not give the bundle: the manifest takes more memory than is left of"},
	} {
		m.will(nil)
		m.tag(t, test.image)
		k := newKit(m.source(t, func(o *RegistryOptions) { o.MaxBytes = 16 << 20 }), bundle.Options{})
		k.options.Memory = memory.NewBudget(test.bytes, 1)
		if got := k.update(t); !strings.HasPrefix(got, test.want) || (test.want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
		if used := k.options.Memory.InUse(); used != 0 {
			t.Errorf("%s: %d bytes are not given back", test.name, used)
		}
	}
}
