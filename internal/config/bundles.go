package config

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Bundle is a bundle of OPA, which RegoPolicies name. Files with credentials and keys are read again
// when they change. In a configuration file, a path is relative to its directory.
type Bundle struct {
	// Name is by which policies name the bundle.
	Name string `json:"name"`
	// URL is its address at a bundle server or a registry of OCI images, File an archive on disk:
	// one of them is set.
	URL  string `json:"url"`
	File string `json:"file"`
	// TokenFile holds the bearer token for the server, or the password of User; empty if there is
	// none.
	TokenFile string `json:"tokenFile"`
	// User is the user of a registry; empty if the token names it.
	User string `json:"user"`
	// TLS is how the server is known, and what is shown to it; nil means the authorities of the system.
	TLS *UpstreamTLS `json:"tls"`
	// MinDelaySeconds and MaxDelaySeconds are the least and the longest time between two questions.
	MinDelaySeconds Seconds `json:"minDelaySeconds"`
	MaxDelaySeconds Seconds `json:"maxDelaySeconds"`
	// LongPollingSeconds is how long the server may hold an answer back until the bundle changes; 0: it
	// is not asked to.
	LongPollingSeconds Seconds `json:"longPollingSeconds"`
	// TimeoutSeconds bounds an answer, beside that.
	TimeoutSeconds Seconds `json:"timeoutSeconds"`
	// MaxStalenessSeconds is how old the bundle may be that policies judge by, since the server last said
	// that it is the newest; 0: as old as it gets.
	MaxStalenessSeconds Seconds `json:"maxStalenessSeconds"`
	// PersistFile keeps the last good version across restarts; empty: nothing does.
	PersistFile string `json:"persistFile"`
	// RegoVersion is the language of the modules, if the manifest does not say it.
	RegoVersion RegoVersion `json:"regoVersion"`
	// MaxBytes bounds the archive, MaxUnpackedBytes its files together, MaxFiles their number.
	MaxBytes         int64 `json:"maxBytes"`
	MaxUnpackedBytes int64 `json:"maxUnpackedBytes"`
	MaxFiles         int32 `json:"maxFiles"`
	// Signing says how the bundle must be signed; nil if it need not be.
	Signing *BundleSigning `json:"signing"`
}

// BundleSigning says how a bundle must be signed.
type BundleSigning struct {
	// Keys are the keys that signatures may be made with.
	Keys []BundleKey `json:"keys"`
	// KeyID names the only one of them that counts; empty: the signature names it.
	KeyID string `json:"keyID"`
	// Scope is the scope that the signature must have; empty: the one of its key.
	Scope string `json:"scope"`
	// ExcludeFiles are patterns of files that the signature need not have.
	ExcludeFiles []string `json:"excludeFiles"`
}

// BundleKey verifies signatures.
type BundleKey struct {
	// Name is by which signatures name it.
	Name string `json:"name"`
	// Algorithm is the only one that it is for.
	Algorithm string `json:"algorithm"`
	// File is a public key or a certificate in PEM, or the secret of an HMAC.
	File string `json:"file"`
	// Scope is the scope that its signatures must have.
	Scope string `json:"scope"`
}

// RegoVersion is a version of the language Rego.
type RegoVersion string

// The versions.
const (
	RegoV0 RegoVersion = "V0"
	RegoV1 RegoVersion = "V1"
)

var (
	regoVersions      = []RegoVersion{RegoV0, RegoV1}
	signingAlgorithms = []string{
		"ES256", "ES384", "ES512", "HS256", "HS384", "HS512",
		"PS256", "PS384", "PS512", "RS256", "RS384", "RS512",
	}
)

func defaultBundle() Bundle {
	return Bundle{
		MinDelaySeconds: 60, MaxDelaySeconds: 120, TimeoutSeconds: 30, RegoVersion: RegoV1,
		MaxBytes: 16 << 20, MaxUnpackedBytes: 64 << 20, MaxFiles: 10_000,
	}
}

// IsSecret reports whether the key is the secret of an HMAC.
func (k *BundleKey) IsSecret() bool { return len(k.Algorithm) > 0 && k.Algorithm[0] == 'H' }

// files are the names of files in b.
func (b *Bundle) files() []*string {
	names := append(b.TLS.files(), &b.File, &b.TokenFile, &b.PersistFile)
	if b.Signing != nil {
		for i := range b.Signing.Keys {
			names = append(names, &b.Signing.Keys[i].File)
		}
	}
	return names
}

func (v *validator) bundles(all []Bundle) {
	kept := map[string]int{}
	for i := range all {
		b, path := &all[i], fmt.Sprintf("bundles[%d]", i)
		v.bundle(path, b)
		for j := range i {
			if all[j].Name == b.Name && b.Name != "" {
				v.check(path+".name", fmt.Sprintf("must be unique; `bundles[%d]` is '%s' too", j, b.Name))
				break
			}
		}
		if b.PersistFile == "" {
			continue
		}
		if first, twice := kept[filepath.Clean(b.PersistFile)]; twice {
			v.check(path+".persistFile", fmt.Sprintf("must be unique; `bundles[%d]` has it too", first))
			continue
		}
		kept[filepath.Clean(b.PersistFile)] = i
	}
}

func (v *validator) bundle(path string, b *Bundle) {
	if b.Name == "" {
		v.check(path+".name", "Required value")
	} else if problems := validation.IsDNS1123Label(b.Name); len(problems) > 0 {
		v.check(path+".name", fmt.Sprintf("must be at most 63 lower-case letters, digits and '-', with a letter or digit at both ends, not '%s'", b.Name))
	}
	if (b.URL == "") == (b.File == "") {
		v.check(path, "must have exactly one of `url` and `file`")
		return
	}
	if b.URL != "" {
		v.check(path+".url", bundleURLProblem(b.URL))
	}
	v.bundleServer(path, b)
	v.within(path+".minDelaySeconds", b.MinDelaySeconds, 1, maxSeconds)
	v.within(path+".maxDelaySeconds", b.MaxDelaySeconds, 1, maxSeconds)
	if b.MaxDelaySeconds < b.MinDelaySeconds {
		v.check(path+".maxDelaySeconds",
			fmt.Sprintf("must be greater than or equal to `%s.minDelaySeconds`, which is %d", path, b.MinDelaySeconds))
	}
	v.within(path+".longPollingSeconds", b.LongPollingSeconds, 0, 3600)
	v.within(path+".timeoutSeconds", b.TimeoutSeconds, 1, 3600)
	v.within(path+".maxStalenessSeconds", b.MaxStalenessSeconds, 0, maxSeconds)
	if least := b.MaxDelaySeconds + b.LongPollingSeconds; b.MaxStalenessSeconds > 0 && b.MaxStalenessSeconds <= least {
		v.check(path+".maxStalenessSeconds",
			fmt.Sprintf("must be greater than %d, after which the server is asked again", least))
	}
	if !slices.Contains(regoVersions, b.RegoVersion) {
		v.check(path+".regoVersion", notOneOf(string(b.RegoVersion), regoVersions))
	}
	between(v, path+".maxBytes", b.MaxBytes, 1<<10, 1<<30)
	between(v, path+".maxUnpackedBytes", b.MaxUnpackedBytes, 1<<10, 1<<30)
	between(v, path+".maxFiles", b.MaxFiles, 1, 1<<20)
	if b.Signing != nil {
		v.bundleSigning(path+".signing", b.Signing)
	}
}

// bundleServer checks what only bundle servers have.
func (v *validator) bundleServer(path string, b *Bundle) {
	isRegistry := scheme(b.URL) == ociScheme || scheme(b.URL) == plainOCIScheme
	if b.User != "" && (!isRegistry || b.TokenFile == "") {
		v.check(path+".user", fmt.Sprintf("must not be set unless `%s.url` is a place in a registry, and `%s.tokenFile` holds the password", path, path))
	}
	if isRegistry && b.LongPollingSeconds > 0 {
		v.check(path+".longPollingSeconds", "must not be set for a registry, which answers at once")
	}
	if scheme(b.URL) == "https" || scheme(b.URL) == ociScheme {
		if b.TLS != nil {
			v.clientTLS(path+".tls", b.TLS)
		}
		return
	}
	if b.TLS != nil {
		v.check(path+".tls", fmt.Sprintf("must not be set unless `%s.url` has the scheme 'https' or 'oci'", path))
	}
	if b.File == "" {
		return
	}
	for _, one := range []struct {
		field string
		set   bool
	}{
		{"tokenFile", b.TokenFile != ""}, {"longPollingSeconds", b.LongPollingSeconds > 0},
		{"persistFile", b.PersistFile != ""},
	} {
		if one.set {
			v.check(path+"."+one.field, fmt.Sprintf("must not be set where `%s.file` is", path))
		}
	}
}

func (v *validator) bundleSigning(path string, s *BundleSigning) {
	if len(s.Keys) == 0 {
		v.check(path+".keys", "Required value: must have at least one item")
	}
	known := map[string]bool{}
	for i := range s.Keys {
		k, at := &s.Keys[i], fmt.Sprintf("%s.keys[%d]", path, i)
		v.required(at+".name", k.Name)
		if known[k.Name] {
			v.check(at+".name", fmt.Sprintf("must be unique; '%s' is listed twice", k.Name))
		}
		known[k.Name] = true
		if !slices.Contains(signingAlgorithms, k.Algorithm) {
			v.check(at+".algorithm", notOneOf(k.Algorithm, signingAlgorithms))
		}
		v.required(at+".file", k.File)
	}
	if s.KeyID != "" && !known[s.KeyID] {
		v.check(path+".keyID", fmt.Sprintf("must be the name of one of `%s.keys`, not '%s'", path, s.KeyID))
	}
	for i, pattern := range s.ExcludeFiles {
		if _, err := filepath.Match(pattern, ""); err != nil || pattern == "" {
			v.check(fmt.Sprintf("%s.excludeFiles[%d]", path, i),
				fmt.Sprintf("must be a pattern of files, not '%s'", pattern))
		}
	}
}

// The schemes of registries, with TLS and without.
const (
	ociScheme      = "oci"
	plainOCIScheme = "oci+http"
)

// ociPath is the path of a bundle in a registry.
var ociPath = regexp.MustCompile(`^/[a-z0-9]+(?:(?:[._]|__|-+|/)[a-z0-9]+)*(?::\w[\w.-]{0,127}|@sha256:[0-9a-f]{64})$`)

// bundleURLProblem says what is wrong with the place of a bundle.
func bundleURLProblem(text string) string {
	u, err := url.Parse(text)
	if err == nil && (u.Scheme == ociScheme || u.Scheme == plainOCIScheme) {
		if u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !ociPath.MatchString(u.Path) {
			return "must be a place in a registry such as 'oci://registry.example.com/team/policies:v1', with a tag or a digest"
		}
		return ""
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return "must be a URL such as 'https://bundles.example.com/payments.tar.gz', without a user and a fragment"
	}
	return ""
}
