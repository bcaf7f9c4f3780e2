package bundles

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/outbound"
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
	// URL is the address of the bundle, such as oci://registry.example.com/team/bundle:v1.
	URL string
	// Network makes connections: it says what is particular to the registry, and Registry the rest.
	Network outbound.Options
	// User is the user whose password the token is; if there is none, the token is a bearer token.
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
		Client: client(o.Network, max(o.MaxBytes, maxManifest)), Cache: auth.NewCache(),
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
func (r *Registry) Fetch(ctx context.Context, have string, _ time.Duration, held *memory.Reservation) (*Answer, error) {
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
	layer, err := r.layer(ctx, image, maxNested, &left, held)
	if err != nil {
		return nil, registryError(err)
	}
	if layer == nil {
		return nil, fmt.Errorf("the image must have a layer of the type %s", ocispec.MediaTypeImageLayerGzip)
	}
	if layer.Size > r.maxBytes {
		return nil, fmt.Errorf("the layer must have at most %d bytes", r.maxBytes)
	}
	if !held.Grow(int(layer.Size)) {
		return nil, fmt.Errorf("the layer %w", errNoMemory)
	}
	archive, err := content.FetchAll(ctx, r.from.Blobs(), *layer)
	if err != nil {
		return nil, registryError(err)
	}
	return &Answer{Archive: archive, Tag: tag}, nil
}

// layer returns the layer with the bundle of an image, or of the first image of an index that has one;
// nil if there is none.
func (r *Registry) layer(ctx context.Context, image ocispec.Descriptor, depth int, left *int,
	held *memory.Reservation) (*ocispec.Descriptor, error) {
	switch *left--; {
	case image.Size > maxManifest:
		return nil, fmt.Errorf("a manifest must have at most %d bytes", maxManifest)
	case *left < 0 || depth < 0:
		return nil, errors.New("the image has too many manifests")
	}
	if !held.Grow(int(image.Size)) {
		return nil, fmt.Errorf("the manifest %w", errNoMemory)
	}
	defer held.Shrink(int(image.Size))
	text, err := content.FetchAll(ctx, r.from, image)
	if err != nil {
		return nil, err
	}
	own, others, err := readManifest(text, held)
	if err != nil {
		return nil, fmt.Errorf("the manifest %w", err)
	}
	if own != nil {
		return own, nil
	}
	for _, one := range others {
		layer, err := r.layer(ctx, one, depth-1, left, held)
		if layer != nil || err != nil {
			return layer, err
		}
	}
	return nil, nil
}

// readManifest returns the first layer of a manifest that has a bundle, and the images of an index,
// as far as any of them may be asked for. It ignores the others, however many a manifest has.
func readManifest(text []byte,
	held *memory.Reservation) (layer *ocispec.Descriptor, images []ocispec.Descriptor, err error) {
	d, err := document.Parse(text, document.Limits{Bytes: maxManifest, Nodes: maxManifest, Memory: held})
	var at *document.Error
	if errors.As(err, &at) && at.Code == document.NoMemory {
		return nil, nil, errNoMemory
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot be read: %w", err)
	}
	defer d.Release()
	layers, _ := d.Root().Get("layers")
	for one := layers.First(); one.Valid(); one = one.Next() {
		if member(one, "mediaType").Is(ocispec.MediaTypeImageLayerGzip) {
			layer, err := descriptor(one)
			return &layer, nil, err
		}
	}
	manifests, _ := d.Root().Get("manifests")
	for one := manifests.First(); one.Valid() && len(images) <= maxManifests; one = one.Next() {
		if p := member(one, "platform"); member(p, "os").Is("unknown") && member(p, "architecture").Is("unknown") {
			continue // gives the source of another image
		}
		image, err := descriptor(one)
		if err != nil {
			return nil, nil, err
		}
		images = append(images, image)
	}
	return nil, images, nil
}

func member(n document.Node, name string) document.Node {
	m, _ := n.Get(name)
	return m
}

// descriptor says what to ask a registry for.
func descriptor(n document.Node) (d ocispec.Descriptor, err error) {
	if d.Size, err = strconv.ParseInt(string(member(n, "size").Raw()), 10, 64); err != nil || d.Size < 0 {
		return d, errors.New("must give each descriptor a size")
	}
	d.MediaType = strings.Clone(member(n, "mediaType").Str())
	d.Digest, err = digest.Parse(strings.Clone(member(n, "digest").Str()))
	return d, err
}

// registryError is an error without URLs: the query of one may hold a credential.
func registryError(err error) error {
	var answer *errcode.ErrorResponse
	if errors.As(err, &answer) {
		return fmt.Errorf("the registry answered with code %d", answer.StatusCode)
	}
	return fmt.Errorf("the registry did not give the bundle: %s",
		queries.ReplaceAllString(withoutQuery(err).Error(), ""))
}

// queries finds the queries of URLs in a text.
var queries = regexp.MustCompile(`\?[^\s"']*`)
