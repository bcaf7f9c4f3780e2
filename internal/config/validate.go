package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/admission-gateway/gateway/internal/manifest"
)

var (
	dialects    = []Dialect{Kubernetes, Plain}
	underscores = []UnderscoreHeaders{Refuse, Drop, Pass}
)

// validator collects what is wrong with a file's values.
type validator struct {
	object *manifest.Object
	errs   Errors
}

// check records a problem with the value at path, unless the problem is empty.
func (v *validator) check(path, problem string) {
	if problem != "" {
		v.errs = append(v.errs, at(v.object, path, "%s", problem))
	}
}

func (v *validator) configuration(c *Configuration) {
	v.check("listen", addressProblem(c.Listen))
	v.listenerTLS("tls", c.TLS)
	v.check("admin.listen", addressProblem(c.Admin.Listen))
	v.listenerTLS("admin.tls", c.Admin.TLS)
	for i := range c.Upstreams {
		v.upstream(fmt.Sprintf("upstreams[%d]", i), &c.Upstreams[i])
		for j := range i {
			if c.Upstreams[j].Name == c.Upstreams[i].Name {
				v.check(fmt.Sprintf("upstreams[%d].name", i), fmt.Sprintf("must be unique; `upstreams[%d]` is '%s' too", j, c.Upstreams[j].Name))
				break
			}
		}
	}
	v.routes(c)
	v.identity(c)
	for i, p := range c.Policies {
		if p == "" {
			v.check(fmt.Sprintf("policies[%d]", i), "must name a file or directory")
		}
	}
	v.limits(&c.Limits)
	t := &c.Timeouts
	v.within("timeouts.headerDeadlineSeconds", t.HeaderDeadlineSeconds, 1, maxSeconds)
	v.within("timeouts.bodyDeadlineSeconds", t.BodyDeadlineSeconds, 1, maxSeconds)
	v.within("timeouts.idleTimeoutSeconds", t.IdleTimeoutSeconds, 1, maxSeconds)
	v.within("timeouts.writeTimeoutSeconds", t.WriteTimeoutSeconds, 1, maxSeconds)
	v.within("timeouts.upgradeIdleTimeoutSeconds", t.UpgradeIdleTimeoutSeconds, 0, maxSeconds)
	v.redis("redis", c.Redis)
	v.within("drainSeconds", c.DrainSeconds, 0, maxSeconds)
	v.within("shutdownDeadlineSeconds", c.ShutdownDeadlineSeconds, 0, maxSeconds)
	if !slices.Contains(admitOns, c.AdmitOn) {
		v.check("admitOn", notOneOf(string(c.AdmitOn), admitOns))
	}
	if !slices.Contains(underscores, c.UnderscoreHeaders) {
		v.check("underscoreHeaders", notOneOf(string(c.UnderscoreHeaders), underscores))
	}
}

// maxSeconds is a day: more than that is a mistake in the unit.
const maxSeconds = 24 * 60 * 60

func (v *validator) upstream(path string, u *Upstream) {
	if u.Name == "" {
		v.check(path+".name", "Required value")
	} else if problems := validation.IsDNS1123Label(u.Name); len(problems) > 0 {
		v.check(path+".name", fmt.Sprintf("must be at most 63 lower-case letters, digits and '-', with a letter or digit at both ends, not '%s'", u.Name))
	}
	if len(u.Endpoints) == 0 && u.Kubeconfig == "" {
		v.check(path+".endpoints", "Required value: must have at least one URL")
	}
	for i, e := range u.Endpoints {
		at := fmt.Sprintf("%s.endpoints[%d]", path, i)
		problem := endpointProblem(e)
		switch {
		case problem != "":
			v.check(at, problem)
		case scheme(e) != scheme(u.Endpoints[0]) && endpointProblem(u.Endpoints[0]) == "":
			v.check(at, fmt.Sprintf("must have the scheme '%s' of `%s.endpoints[0]`", scheme(u.Endpoints[0]), path))
		case slices.Contains(u.Endpoints[:i], e):
			v.check(at, fmt.Sprintf("must be unique; '%s' is listed twice", e))
		}
	}
	if !slices.Contains(dialects, u.Dialect) {
		v.check(path+".dialect", notOneOf(string(u.Dialect), dialects))
	}
	v.account(path, u)
	v.credentials(path, u)
	v.upgrades(path, u.Upgrades)
	v.within(path+".connectTimeoutSeconds", u.ConnectTimeoutSeconds, 1, maxSeconds)
	v.within(path+".responseTimeoutSeconds", u.ResponseTimeoutSeconds, 1, maxSeconds)
	v.within(path+".bodyTimeoutSeconds", u.BodyTimeoutSeconds, 1, maxSeconds)
	v.within(path+".streamTimeoutSeconds", u.StreamTimeoutSeconds, 0, maxSeconds)
	v.within(path+".idleTimeoutSeconds", u.IdleTimeoutSeconds, 1, maxSeconds)
	v.within(path+".queueTimeoutSeconds", u.QueueTimeoutSeconds, 1, maxSeconds)
	between(v, path+".maxConnections", u.MaxConnections, 1, 1<<20)
	v.balance(path, &u.Balance)
}

func (v *validator) routes(c *Configuration) {
	for i, r := range c.Routes {
		path := fmt.Sprintf("routes[%d]", i)
		v.check(path+".host", hostProblem(r.Host))
		v.check(path+".pathPrefix", pathPrefixProblem(r.PathPrefix))
		switch {
		case r.Upstream == "":
			v.check(path+".upstream", "Required value")
		case !slices.ContainsFunc(c.Upstreams, func(u Upstream) bool { return u.Name == r.Upstream }):
			v.check(path+".upstream", fmt.Sprintf("must be the name of one of the `upstreams`, not '%s'", r.Upstream))
		}
		for j, other := range c.Routes[:i] {
			if other.Host == r.Host && other.PathPrefix == r.PathPrefix {
				v.check(path, fmt.Sprintf("must not have the host and path prefix of `routes[%d]`", j))
				break
			}
		}
	}
}

func (v *validator) limits(l *Limits) {
	const mebi = 1 << 20
	between(v, "limits.bodyBytes", l.BodyBytes, 1, 1<<30)
	between(v, "limits.bodiesInFlightBytes", l.BodiesInFlightBytes, 1, 1<<40)
	if l.BodyBytes > l.BodiesInFlightBytes && l.BodyBytes <= 1<<30 && l.BodiesInFlightBytes >= 1 {
		v.check("limits.bodiesInFlightBytes", fmt.Sprintf("must be greater than or equal to `limits.bodyBytes`, which is %d", l.BodyBytes))
	}
	between(v, "limits.headerBytes", l.HeaderBytes, 1<<10, mebi)
	between(v, "limits.uriBytes", l.URIBytes, 128, mebi)
	between(v, "limits.headers", l.Headers, 8, 10_000)
	between(v, "limits.jsonDepth", l.JSONDepth, 1, 10_000)
	between(v, "limits.jsonNodes", l.JSONNodes, 1, 1<<30)
	between(v, "limits.connections", l.Connections, 1, mebi)
}

func (v *validator) within(path string, value, low, high Seconds) { between(v, path, value, low, high) }

func between[N int32 | int64 | Seconds](v *validator, path string, value, low, high N) {
	if value < low || value > high {
		v.check(path, fmt.Sprintf("must be between %d and %d, inclusive, not %d", low, high, value))
	}
}

func notOneOf[E ~string](value string, known []E) string {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = "'" + string(k) + "'"
	}
	last := len(names) - 1
	return fmt.Sprintf("must be %s or %s, not '%s'", strings.Join(names[:last], ", "), names[last], value)
}

// addressProblem says what is wrong with an address to listen on; empty means nothing.
func addressProblem(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Sprintf("must be a host and a port such as '127.0.0.1:8080', not '%s'", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return fmt.Sprintf("must end with a port between 0 and 65535, not '%s'", port)
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && len(validation.IsDNS1123Subdomain(strings.ToLower(host))) > 0 {
		return fmt.Sprintf("must begin with a host name or an IP address, not '%s'", host)
	}
	return ""
}

// endpointProblem says what is wrong with the base URL of a backend.
func endpointProblem(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Sprintf("must be a URL such as 'http://127.0.0.1:9000', not '%s'", endpoint)
	}
	if u.User != nil {
		return "must not hold a user name or password"
	}
	if !isHost(u.Hostname()) {
		return fmt.Sprintf("must have a host name or an IP address for its host, not '%s'", u.Hostname())
	}
	if u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return fmt.Sprintf("must end after the host and port: paths are forwarded as clients send them, not '%s'", endpoint)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Sprintf("must have a port between 1 and 65535, not '%s'", port)
		}
	}
	return ""
}

func scheme(endpoint string) string {
	scheme, _, _ := strings.Cut(endpoint, ":")
	return scheme
}

func hostProblem(host string) string {
	if host == "" {
		return ""
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return ""
	}
	if len(validation.IsDNS1123Subdomain(host)) > 0 {
		return fmt.Sprintf("must be a host name in lower case without a port, not '%s'", host)
	}
	return ""
}

func pathPrefixProblem(prefix string) string {
	if !strings.HasPrefix(prefix, "/") {
		return fmt.Sprintf("must begin with '/', not '%s'", prefix)
	}
	if prefix == "/" {
		return ""
	}
	if strings.HasSuffix(prefix, "/") {
		return "must not end with '/': a prefix counts whole segments, so '/v2' is all of '/v2/…'"
	}
	for _, segment := range strings.Split(prefix[1:], "/") {
		if segment == "" || segment == "." || segment == ".." {
			return "must not have empty segments, '.' or '..'"
		}
		if strings.ContainsFunc(segment, notPlain) {
			return "must have only letters, digits and '-', '.', '_', '~' in its segments"
		}
	}
	return ""
}

// notPlain tells of characters that have more than one spelling in a URL or a meaning of their own.
func notPlain(c rune) bool {
	alphanumeric := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	return !alphanumeric && !strings.ContainsRune("-._~", c)
}

// parsePrefix reads a CIDR block or a single address.
func parsePrefix(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("must be an address or a CIDR block such as '10.0.0.0/8', not '%s'", text)
	}
	if p != p.Masked() {
		return netip.Prefix{}, fmt.Errorf("must be a block without bits beyond its length: '%s', not '%s'", p.Masked(), text)
	}
	return p, nil
}
