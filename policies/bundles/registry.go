package bundles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// The schemes of places in registries of OCI images.
const (
	registryScheme = "oci://"
	plainScheme    = "oci+http://" // without TLS
)

// IsRegistry reports whether a URL is a place in a registry.
func IsRegistry(url string) bool {
	return strings.HasPrefix(url, registryScheme) || strings.HasPrefix(url, plainScheme)
}

// A Registry gets a bundle from a registry of OCI images. It is the first layer of an image that is a
// compressed archive, as `opa build` and `oras push` make it. The digest of the manifest is the tag.
type Registry struct {
	reference string
	from      *remote.Repository
	timeout   time.Duration
	maxBytes  int64
}

// RegistryOptions configure a Registry.
type RegistryOptions struct {
	// URL is where the bundle is, such as oci://registry.example.com/team/bundle:v1.
	URL string
	// Transport makes connections.
	Transport http.RoundTripper
	// User is who asks, whose password the token is; if there is none, the token is a bearer token.
	User string
	// Token returns the token; nil or empty: there is none.
	Token func() string
	// Timeout bounds one answer.
	Timeout time.Duration
	// MaxBytes bounds the archive.
	MaxBytes int64
}

// NewRegistry returns a Registry that was not asked yet.
func NewRegistry(o RegistryOptions) (*Registry, error) {
	place, isSecure := strings.CutPrefix(o.URL, registryScheme)
	place = strings.TrimPrefix(place, plainScheme)
	from, err := remote.NewRepository(place)
	if err != nil {
		return nil, err
	}
	from.PlainHTTP, from.MaxMetadataBytes = !isSecure, maxManifest
	r := &Registry{reference: from.Reference.Reference, from: from, timeout: o.Timeout, maxBytes: o.MaxBytes}
	from.Client = &auth.Client{
		Client: &http.Client{Transport: o.Transport, CheckRedirect: mayRedirect}, Cache: auth.NewCache(),
		Credential: func(_ context.Context, host string) (auth.Credential, error) {
			if o.Token == nil || host != from.Reference.Host() {
				return auth.EmptyCredential, nil
			}
			if o.User == "" {
				return auth.Credential{AccessToken: o.Token()}, nil
			}
			return auth.Credential{Username: o.User, Password: o.Token()}, nil
		},
	}
	return r, nil
}

const (
	// maxManifest bounds a manifest, in bytes.
	maxManifest = 4 << 20
	// maxManifests bounds how many manifests are read of an image, and maxNested how deep they are nested.
	maxManifests = 16
	maxNested    = 4
)

// Fetch implements Fetcher.
func (r *Registry) Fetch(ctx context.Context, have string, _ time.Duration) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	image, err := r.from.Resolve(ctx, r.reference)
	if err != nil {
		return nil, registryError(err)
	}
	tag := image.Digest.String()
	if tag == have {
		return &Answer{Tag: tag}, nil
	}
	left := maxManifests
	layer, err := r.layer(ctx, image, maxNested, &left)
	if err != nil {
		return nil, registryError(err)
	}
	if layer == nil {
		return nil, fmt.Errorf("the image must have a layer of the type %s", ocispec.MediaTypeImageLayerGzip)
	}
	if layer.Size > r.maxBytes {
		return nil, fmt.Errorf("the layer must have at most %d bytes", r.maxBytes)
	}
	archive, err := content.FetchAll(ctx, r.from.Blobs(), *layer)
	if err != nil {
		return nil, registryError(err)
	}
	return &Answer{Archive: archive, Tag: tag}, nil
}

// layer returns the layer with the bundle of an image, or of the first image of an index that has one;
// nil if there is none.
func (r *Registry) layer(ctx context.Context, image ocispec.Descriptor, depth int, left *int) (*ocispec.Descriptor, error) {
	switch *left--; {
	case image.Size > maxManifest:
		return nil, fmt.Errorf("a manifest must have at most %d bytes", maxManifest)
	case *left < 0 || depth < 0:
		return nil, errors.New("the image has too many manifests")
	}
	text, err := content.FetchAll(ctx, r.from, image)
	if err != nil {
		return nil, err
	}
	var manifest struct {
		Layers    []ocispec.Descriptor
		Manifests []ocispec.Descriptor
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, fmt.Errorf("the manifest cannot be read: %w", err)
	}
	for i := range manifest.Layers {
		if manifest.Layers[i].MediaType == ocispec.MediaTypeImageLayerGzip {
			return &manifest.Layers[i], nil
		}
	}
	for _, one := range manifest.Manifests {
		if p := one.Platform; p != nil && p.OS == "unknown" && p.Architecture == "unknown" {
			continue // says where another image comes from
		}
		layer, err := r.layer(ctx, one, depth-1, left)
		if layer != nil || err != nil {
			return layer, err
		}
	}
	return nil, nil
}

// registryError is an error without URLs: the query of one may hold a credential.
func registryError(err error) error {
	var answer *errcode.ErrorResponse
	if errors.As(err, &answer) {
		return fmt.Errorf("the registry answered with code %d", answer.StatusCode)
	}
	return fmt.Errorf("the registry did not give the bundle: %s", queries.ReplaceAllString(withoutQuery(err).Error(), ""))
}

// queries finds the queries of URLs in a text.
var queries = regexp.MustCompile(`\?[^\s"']*`)
