package bundles

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/admission-gateway/gateway/admission/rego/bundle"
	"github.com/admission-gateway/gateway/internal/outbound"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// images is a registry whose answers tests may change.
type images struct {
	*httptest.Server
	to *remote.Repository

	mu    sync.Mutex
	asked []string
	// instead answers a request itself if it returns true.
	instead func(w http.ResponseWriter, r *http.Request) bool
}

func newImages(t *testing.T) *images {
	t.Helper()
	m := &images{}
	real := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	m.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.asked = append(m.asked, r.Method+" "+r.URL.Path)
		instead := m.instead
		m.mu.Unlock()
		if instead == nil || !instead(w, r) {
			real.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(m.Close)
	var err error
	if m.to, err = remote.NewRepository(m.host() + "/team/policies"); err != nil {
		t.Fatal(err)
	}
	m.to.Client = m.Client()
	return m
}

func (m *images) host() string { return strings.TrimPrefix(m.URL, "https://") }

func (m *images) will(instead func(w http.ResponseWriter, r *http.Request) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.instead, m.asked = instead, nil
}

func (m *images) questions() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.ReplaceAll(strings.Join(m.asked, ", "), "/v2/team/policies/", "")
}

// push pushes content, and returns how manifests name it.
func (m *images) push(t *testing.T, mediaType string, content []byte) ocispec.Descriptor {
	t.Helper()
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
	if err := m.to.Push(context.Background(), d, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	return d
}

// manifest pushes a manifest.
func (m *images) manifest(t *testing.T, mediaType string, manifest any) ocispec.Descriptor {
	t.Helper()
	text, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	return m.push(t, mediaType, text)
}

// image pushes an image of layers.
func (m *images) image(t *testing.T, layers ...ocispec.Descriptor) ocispec.Descriptor {
	t.Helper()
	made := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest,
		Config: m.push(t, ocispec.MediaTypeImageConfig, []byte("{}")), Layers: layers}
	made.SchemaVersion = 2
	return m.manifest(t, ocispec.MediaTypeImageManifest, made)
}

// index pushes an index of images.
func (m *images) index(t *testing.T, of ...ocispec.Descriptor) ocispec.Descriptor {
	t.Helper()
	made := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: of}
	made.SchemaVersion = 2
	return m.manifest(t, ocispec.MediaTypeImageIndex, made)
}

// tag gives an image the tag v1.
func (m *images) tag(t *testing.T, image ocispec.Descriptor) {
	t.Helper()
	if err := m.to.Tag(context.Background(), image, "v1"); err != nil {
		t.Fatal(err)
	}
}

func (m *images) layer(t *testing.T, revision string) ocispec.Descriptor {
	t.Helper()
	return m.push(t, ocispec.MediaTypeImageLayerGzip, archive(t, revision))
}

// source asks the registry for the tag v1.
func (m *images) source(t *testing.T, change func(o *RegistryOptions)) Source {
	t.Helper()
	o := RegistryOptions{
		URL: "oci://" + m.host() + "/team/policies:v1", Network: outbound.Options{TLS: trusting(m.Server)},
		Timeout: testutil.Patience, MaxBytes: 4 << 10,
	}
	if change != nil {
		change(&o)
	}
	from, err := NewRegistry(o)
	if err != nil {
		t.Fatal(err)
	}
	return Source{From: from}
}

// TestRegistry: a tag is asked for, and its image is read only if it is another one.
func TestRegistry(t *testing.T) {
	m := newImages(t)
	notes := m.push(t, "text/plain", []byte("notes"))
	m.tag(t, m.image(t, notes, m.layer(t, "r1")))
	m.will(nil)
	k := newKit(m.source(t, nil), bundle.Options{})
	if got := k.update(t); got != "" {
		t.Fatal(got)
	}
	revision := func() string { return k.Status()[0].Revision }
	if got := revision(); got != "r1" || k.usable() != "" {
		t.Errorf("the revision is %s, %s", got, k.usable())
	}
	if got := m.questions(); strings.Count(got, "GET manifests/sha256:") != 1 ||
		strings.Count(got, "GET blobs/sha256:") != 1 || !strings.HasPrefix(got, "HEAD manifests/v1, ") {
		t.Errorf("the registry was asked %s", got)
	}
	m.will(nil)
	if got := k.update(t); got != "" || m.questions() != "HEAD manifests/v1" {
		t.Errorf("%s: the registry was asked %s", got, m.questions())
	}
	provenance := m.image(t, notes)
	provenance.Platform = &ocispec.Platform{OS: "unknown", Architecture: "unknown"}
	m.tag(t, m.index(t, provenance, m.index(t, m.image(t, notes)), m.image(t, m.layer(t, "r2"))))
	if got := k.update(t); got != "" || revision() != "r2" {
		t.Errorf("%s: the revision is %s", got, revision())
	}
}

// TestRegistryFaults: what is wrong with a registry or an image changes nothing.
func TestRegistryFaults(t *testing.T) {
	m := newImages(t)
	good := m.image(t, m.layer(t, "r1"))
	answer := func(code int) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(code); return true }
	}
	blobs := func(answer http.HandlerFunc) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			isBlob := strings.Contains(r.URL.Path, "/blobs/")
			if isBlob {
				answer(w, r)
			}
			return isBlob
		}
	}
	deep := m.image(t, m.layer(t, "r4"))
	for range maxNested + 1 {
		deep = m.index(t, deep)
	}
	var many []ocispec.Descriptor
	for i := range maxManifests {
		many = append(many, m.image(t, m.push(t, "text/plain", fmt.Append(nil, i))))
	}
	body := archive(t, "r5")
	for _, test := range []struct {
		name    string
		image   ocispec.Descriptor
		instead func(w http.ResponseWriter, r *http.Request) bool
		want    string
	}{
		{"down", good, answer(503), "the registry answered with code 503"},
		{"no tag", good, answer(404), "the registry did not give the bundle: "},
		{"refused", good, answer(403), "the registry answered with code 403"},
		{"no bundle", m.image(t, m.push(t, "text/plain", []byte("x"))), nil, "the image must have a layer of the type application/vnd.oci.image.layer.v1.tar+gzip"},
		{"an empty index", m.index(t), nil, "the image must have a layer of the type"},
		{"deep", deep, nil, "the registry did not give the bundle: the image has too many manifests"},
		{"many", m.index(t, many...), nil, "the registry did not give the bundle: the image has too many manifests"},
		{"large", m.image(t, m.push(t, ocispec.MediaTypeImageLayerGzip, make([]byte, 5<<10))), nil,
			"the layer must have at most 4096 bytes"},
		{"no archive", m.image(t, m.push(t, ocispec.MediaTypeImageLayerGzip, []byte("no"))), nil,
			"must be an archive that gzip compressed: "},
		{"changed", m.image(t, m.push(t, ocispec.MediaTypeImageLayerGzip, body)),
			blobs(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(append([]byte("x"), body[1:]...))
			}), "the registry did not give the bundle: "},
		{"half", good, blobs(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body[:100]) }),
			"the registry did not give the bundle: "},
		{"elsewhere without TLS", good, blobs(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/?secret=x", http.StatusTemporaryRedirect)
		}), "the registry did not give the bundle: the server redirects to an address without TLS"},
		{"a token without TLS", good, func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://127.0.0.1:1/token?secret=x",service="s"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}, "the registry did not give the bundle: "},
	} {
		m.will(nil)
		m.tag(t, test.image)
		m.will(test.instead)
		k := newKit(m.source(t, func(o *RegistryOptions) { o.User, o.Token = "u", func() string { return "secret" } }),
			bundle.Options{})
		got := k.update(t)
		if !strings.HasPrefix(got, test.want) || strings.Contains(got, "secret") || k.usable() == "" {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

// TestRegistryCredentials: a registry gets the credentials in the form that it asks for, and no
// other server gets them.
func TestRegistryCredentials(t *testing.T) {
	m := newImages(t)
	m.tag(t, m.image(t, m.layer(t, "r1")))
	other := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "" {
			t.Errorf("another server got %s", got)
		}
		_, _ = w.Write(archive(t, "r1"))
	}))
	t.Cleanup(other.Close)
	basic := "Basic dTpzZWNyZXQ=" // u:secret
	asks := func(challenge, wants string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case r.URL.Path == "/token":
				if r.Header.Get("Authorization") != basic {
					w.WriteHeader(http.StatusUnauthorized)
					return true
				}
				_, _ = w.Write([]byte(`{"token": "short"}`))
				return true
			case r.Header.Get("Authorization") != wants:
				w.Header().Set("WWW-Authenticate", challenge)
				w.WriteHeader(http.StatusUnauthorized)
				return true
			case strings.Contains(r.URL.Path, "/blobs/"):
				http.Redirect(w, r, strings.Replace(other.URL, "127.0.0.1", "localhost", 1)+"/blob",
					http.StatusTemporaryRedirect)
				return true
			}
			return false
		}
	}
	insecure := &tls.Config{InsecureSkipVerify: true}
	bearer := `Bearer realm="` + m.URL + `/token",service="registry",scope="repository:team/policies:pull"`
	for _, test := range []struct{ name, user, token, challenge, wants, want string }{
		{"basic", "u", "secret", `Basic realm="r"`, basic, ""},
		{"a token for a password", "u", "secret", bearer, "Bearer short", ""},
		{"a bearer token", "", "long", bearer, "Bearer long", ""},
		{"a wrong password", "u", "wrong", bearer, "Bearer short", "the registry answered with code 401"},
		{"none", "", "", `Basic realm="r"`, basic, "the registry did not give the bundle: "},
	} {
		m.will(asks(test.challenge, test.wants))
		k := newKit(m.source(t, func(o *RegistryOptions) {
			o.Network.TLS = func() *tls.Config { return insecure }
			o.User, o.Token = test.user, func() string { return test.token }
		}), bundle.Options{})
		if got := k.update(t); (test.want == "") != (got == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

// TestPlainRegistry: a registry is asked without TLS if its URL says so.
func TestPlainRegistry(t *testing.T) {
	m := newImages(t)
	m.tag(t, m.image(t, m.layer(t, "r1")))
	plain := httptest.NewServer(m.Config.Handler)
	t.Cleanup(plain.Close)
	k := newKit(m.source(t, func(o *RegistryOptions) {
		o.URL = "oci+http://" + strings.TrimPrefix(plain.URL, "http://") + "/team/policies:v1"
	}), bundle.Options{})
	if got := k.update(t); got != "" {
		t.Error(got)
	}
	if _, err := NewRegistry(RegistryOptions{URL: "oci://registry/UPPER:v1"}); err == nil {
		t.Error("a wrong name is taken")
	}
}
