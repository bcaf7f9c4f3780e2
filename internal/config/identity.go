package config

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	apiservervalidation "k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
)

// Identity says whose credentials count. Without it none do: all users are anonymous to policies,
// and credentials go on to the backend.
type Identity struct {
	// Authenticators are tried in their order; the first that knows the credentials decides. They
	// may be empty if Anonymous is Allow: then all users are anonymous, as without an identity, and
	// policies may read the user.
	Authenticators []Authenticator `json:"authenticators"`
	// Anonymous says what happens to requests without credentials.
	Anonymous Anonymous `json:"anonymous"`
	// Tokens bounds what is remembered of bearer tokens, and what invalid ones may take.
	Tokens Tokens `json:"tokens"`
}

// Anonymous says what happens to requests without credentials.
type Anonymous string

// What can happen to them.
const (
	// DenyAnonymous answers 401.
	DenyAnonymous Anonymous = "Deny"
	// AllowAnonymous lets them pass as system:anonymous.
	AllowAnonymous Anonymous = "Allow"
)

// Authenticator is a way to identify the user: exactly one of its members is set.
type Authenticator struct {
	// ClientCertificate is by the certificates that the authorities of the listener's tls.clientCAFile have signed.
	ClientCertificate *ClientCertificate `json:"clientCertificate"`
	// JWT is an issuer of JWTs, as in Kubernetes' AuthenticationConfiguration.
	JWT *JWT `json:"jwt"`
	// TokenReview asks a Kubernetes API server whose a bearer token is.
	TokenReview *TokenReview `json:"tokenReview"`
	// RequestHeader is by the headers X-Remote-* of a proxy.
	RequestHeader *RequestHeader `json:"requestHeader"`
}

// isOne reports whether exactly one of its members is set.
func (a *Authenticator) isOne() bool {
	set := 0
	for _, one := range []bool{a.ClientCertificate != nil, a.JWT != nil, a.TokenReview != nil, a.RequestHeader != nil} {
		if one {
			set++
		}
	}
	return set == 1
}

// ClientCertificate has no settings: the common name is the user, organizations are the groups.
type ClientCertificate struct{}

// JWT is an issuer of JWTs.
type JWT struct {
	apiserverv1.JWTAuthenticator `json:",inline"`
}

// Internal is the issuer in the form that Kubernetes' library takes.
func (j *JWT) Internal() (*apiserver.JWTAuthenticator, error) {
	out := new(apiserver.JWTAuthenticator)
	err := apiserverv1.Convert_v1_JWTAuthenticator_To_apiserver_JWTAuthenticator(&j.JWTAuthenticator, out, nil)
	return out, err
}

// TokenReview asks a Kubernetes API server whose a bearer token is.
type TokenReview struct {
	// Upstream is the name of the one that is asked, with the gateway's own account.
	Upstream string `json:"upstream"`
	// Audiences are the audiences that a token may be for. Without any, a token must be for the API
	// server itself.
	Audiences []string `json:"audiences"`
}

// RequestHeader says which proxies may name the user.
type RequestHeader struct {
	// CAFile is a PEM file with the authorities that sign the certificates of proxies; empty means
	// the listener's tls.clientCAFile. A path in a file is relative to its directory.
	CAFile string `json:"caFile"`
	// ClientNames are the common names of proxies' certificates; if empty, all are accepted if
	// there is a CAFile, and none otherwise.
	ClientNames []string `json:"clientNames"`
	// Addresses are of proxies that need no certificate.
	Addresses []Prefix `json:"addresses"`
}

// Tokens bounds what is remembered of bearer tokens, and what invalid ones may take.
type Tokens struct {
	// CacheEntries is how many valid tokens are remembered, and how many invalid ones. Of tokens only a hash is kept.
	CacheEntries int32 `json:"cacheEntries"`
	// CacheSeconds is how long a verified JWT counts, at most until it expires.
	CacheSeconds Seconds `json:"cacheSeconds"`
	// ReviewCacheSeconds is how long the answer to a TokenReview counts.
	ReviewCacheSeconds Seconds `json:"reviewCacheSeconds"`
	// FailureCacheSeconds is how long a token that is not valid is not looked at again.
	FailureCacheSeconds Seconds `json:"failureCacheSeconds"`
	// FailuresPerMinute is how many different invalid tokens an API server is asked about for a client address,
	// FailureBurst how many at once.
	FailuresPerMinute int32 `json:"failuresPerMinute"`
	FailureBurst      int32 `json:"failureBurst"`
}

// Credentials says how the user is passed to a backend.
type Credentials string

// The ways to pass it.
const (
	// PassCredentials passes on what the client sent.
	PassCredentials Credentials = "Pass"
	// FrontProxyCredentials passes the user in X-Remote-User, -Uid, -Group and -Extra-* instead,
	// which the backend must accept from the gateway only.
	FrontProxyCredentials Credentials = "FrontProxy"
	// ImpersonateCredentials asks with the gateway's own account to act as the user, by Impersonate-User, -Uid, -Group
	// and -Extra-*.
	ImpersonateCredentials Credentials = "Impersonate"
)

var (
	anonymous   = []Anonymous{DenyAnonymous, AllowAnonymous}
	credentials = []Credentials{PassCredentials, FrontProxyCredentials, ImpersonateCredentials}
)

func defaultIdentity() *Identity {
	return &Identity{
		Anonymous: DenyAnonymous,
		Tokens: Tokens{
			CacheEntries: 8192, CacheSeconds: 60, ReviewCacheSeconds: 10, FailureCacheSeconds: 5,
			FailuresPerMinute: 60, FailureBurst: 20,
		},
	}
}

// Knows reports whether there is a way to identify the user. Without one all users are anonymous:
// if there is an identity all the same, the configuration says that this is meant.
func (i *Identity) Knows() bool { return i != nil && len(i.Authenticators) > 0 }

// files are the names of files in it.
func (i *Identity) files() []*string {
	var files []*string
	if i != nil {
		for _, a := range i.Authenticators {
			if a.RequestHeader != nil {
				files = append(files, &a.RequestHeader.CAFile)
			}
		}
	}
	return files
}

// identity checks who counts as whom.
func (v *validator) identity(c *Configuration) {
	if c.Identity == nil {
		for i, u := range c.Upstreams {
			if u.Credentials == FrontProxyCredentials || u.Credentials == ImpersonateCredentials {
				v.check(fmt.Sprintf("upstreams[%d].credentials", i),
					fmt.Sprintf("must not be '%s' without `identity`, which says who asks", u.Credentials))
			}
		}
		return
	}
	if !slices.Contains(anonymous, c.Identity.Anonymous) {
		v.check("identity.anonymous", notOneOf(string(c.Identity.Anonymous), anonymous))
	}
	if !c.Identity.Knows() && c.Identity.Anonymous != AllowAnonymous {
		v.check("identity.authenticators", "Required value: must have at least one item, unless `anonymous` is 'Allow': then everybody is 'system:anonymous'")
	}
	asks := slices.ContainsFunc(c.AllListeners(),
		func(l Listener) bool { return l.TLS != nil && l.TLS.ClientCAFile != "" })
	issuers := map[string]int{}
	compiler := sync.OnceValue(authenticationcel.NewDefaultCompiler) // which takes its time
	for i := range c.Identity.Authenticators {
		v.authenticator(fmt.Sprintf("identity.authenticators[%d]", i), &c.Identity.Authenticators[i], c, asks, compiler)
		if j := c.Identity.Authenticators[i].JWT; j != nil {
			if first, twice := issuers[j.Issuer.URL]; twice {
				v.check(fmt.Sprintf("identity.authenticators[%d].jwt.issuer.url", i),
					fmt.Sprintf("must be unique; `identity.authenticators[%d]` has '%s' too", first, j.Issuer.URL))
			} else {
				issuers[j.Issuer.URL] = i
			}
		}
	}
	t := &c.Identity.Tokens
	between(v, "identity.tokens.cacheEntries", t.CacheEntries, 1, 1<<20)
	v.within("identity.tokens.cacheSeconds", t.CacheSeconds, 1, 3600)
	v.within("identity.tokens.reviewCacheSeconds", t.ReviewCacheSeconds, 1, 600)
	v.within("identity.tokens.failureCacheSeconds", t.FailureCacheSeconds, 1, 60)
	between(v, "identity.tokens.failuresPerMinute", t.FailuresPerMinute, 1, 60_000)
	between(v, "identity.tokens.failureBurst", t.FailureBurst, 1, 60_000)
}

// authenticator checks one of them; asks reports whether a listener verifies client certificates.
func (v *validator) authenticator(path string, a *Authenticator, c *Configuration, asks bool,
	compiler func() authenticationcel.Compiler) {
	if !a.isOne() {
		v.check(path, "must have exactly one of `clientCertificate`, `jwt`, `tokenReview` and `requestHeader`")
		return
	}
	switch {
	case a.ClientCertificate != nil && !asks:
		v.check(path+".clientCertificate", "must not be set without `tls.clientCAFile`, which names the authorities")
	case a.JWT != nil:
		v.jwt(path+".jwt", a.JWT, compiler)
	case a.TokenReview != nil:
		v.tokenReview(path+".tokenReview", a.TokenReview)
	case a.RequestHeader != nil:
		v.requestHeader(path+".requestHeader", a.RequestHeader, asks, c.AllListeners())
	}
}

func (v *validator) tokenReview(path string, t *TokenReview) {
	for i, audience := range t.Audiences {
		v.required(fmt.Sprintf("%s.audiences[%d]", path, i), audience)
	}
	if t.Upstream == "" {
		v.check(path+".upstream", "Required value: must be the name of one of the `upstreams`")
	}
}

// reviewers checks the upstreams that are asked about tokens. It takes the upstreams that the gateway will have, which
// flags and the pod may bring too.
func (v *validator) reviewers(c *Configuration) {
	if c.Identity == nil || len(c.Upstreams) == 0 {
		return // with no upstream at all there is more to say
	}
	for i := range c.Identity.Authenticators {
		a := &c.Identity.Authenticators[i]
		t := a.TokenReview
		if t == nil || t.Upstream == "" || !a.isOne() {
			continue
		}
		path := fmt.Sprintf("identity.authenticators[%d].tokenReview.upstream", i)
		at := slices.IndexFunc(c.Upstreams, func(u UpstreamSpec) bool { return u.Name == t.Upstream })
		switch {
		case at < 0:
			v.check(path, fmt.Sprintf("must be the name of one of the `upstreams`, not '%s'", t.Upstream))
		case c.Upstreams[at].Dialect != Kubernetes:
			v.check(path, fmt.Sprintf("must name a backend of the dialect 'Kubernetes'; the dialect of '%s' is '%s'",
				t.Upstream, c.Upstreams[at].Dialect))
		}
	}
}

func (v *validator) requestHeader(path string, r *RequestHeader, asks bool, all []Listener) {
	areAsked := slices.ContainsFunc(all,
		func(l Listener) bool { return l.TLS != nil && l.TLS.ClientCertificates != IgnoreCertificates })
	mayDiffer := slices.ContainsFunc(all,
		func(l Listener) bool { return l.TLS != nil && l.TLS.ClientCertificates == RequestCertificates })
	switch {
	case r.CAFile == "" && len(r.ClientNames) == 0 && len(r.Addresses) == 0:
		v.check(path, "must name the proxies by `caFile`, `clientNames` or `addresses`")
	case r.CAFile != "" && !areAsked:
		v.check(path+".caFile", "must not be set where `tls` does not ask clients for certificates")
	case r.CAFile != "" && !mayDiffer:
		v.check(path+".caFile", "must not be set where `tls.clientCertificates` is 'Require': then only certificates of the authorities in `tls.clientCAFile` survive the handshake")
	case r.CAFile == "" && len(r.ClientNames) > 0 && !asks:
		v.check(path+".clientNames", "must not be set without `caFile` here or `tls.clientCAFile`, which name the authorities")
	}
	for i, name := range r.ClientNames {
		v.required(fmt.Sprintf("%s.clientNames[%d]", path, i), name)
	}
}

// jwt has Kubernetes' library check an issuer, and compile its expressions.
func (v *validator) jwt(path string, j *JWT, compiler func() authenticationcel.Compiler) {
	if j.Issuer.EgressSelectorType != "" {
		v.check(path+".issuer.egressSelectorType", "must not be set: the gateway has no egress selectors")
		return
	}
	internal, err := j.Internal()
	if err != nil {
		v.check(path, err.Error())
		return
	}
	_, problems := apiservervalidation.CompileAndValidateJWTAuthenticator(compiler(), *internal, nil)
	for _, p := range problems {
		v.check(path+"."+strings.TrimPrefix(p.Field, "."), p.ErrorBody())
	}
}

// credentials checks how the user is passed to a backend.
func (v *validator) credentials(path string, u *UpstreamSpec) {
	shows := u.Kubeconfig != "" || u.TLS != nil && u.TLS.CertFile != ""
	secure := len(u.Endpoints) > 0 && scheme(u.Endpoints[0]) == "https"
	switch {
	case !slices.Contains(credentials, u.Credentials):
		v.check(path+".credentials", notOneOf(string(u.Credentials), credentials))
	case u.Credentials == ImpersonateCredentials && u.Dialect == Plain:
		v.check(path+".credentials", "must not be 'Impersonate' for the dialect 'Plain': only Kubernetes API servers know how to act as another user")
	case u.Credentials == ImpersonateCredentials && !shows && u.TokenFile == "":
		v.check(path+".credentials", "must not be 'Impersonate' without `tokenFile`, `tls.certFile` or `kubeconfig`, by which the gateway has an account of its own")
	case u.Credentials == FrontProxyCredentials && u.Dialect == Kubernetes && secure && !shows:
		v.check(path+".credentials", "must not be 'FrontProxy' without `tls.certFile` or `kubeconfig`: API servers believe a front proxy by its certificate")
	}
}
