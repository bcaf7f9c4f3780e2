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
)

// addressProblem says what is wrong with an address to listen on; empty means nothing.
func addressProblem(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Sprintf("must be a host and a port such as '127.0.0.1:8080', not '%s'", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return fmt.Sprintf("must end with a port between 0 and 65535, not '%s'", port)
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" &&
		len(validation.IsDNS1123Subdomain(strings.ToLower(host))) > 0 {
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
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return fmt.Sprintf("must not have a query or a fragment, not '%s'", endpoint)
	}
	if base := strings.TrimSuffix(u.EscapedPath(), "/"); base != "" && pathPrefixProblem(base) != "" {
		return fmt.Sprintf("has the path '%s', which %s", u.EscapedPath(), pathPrefixProblem(base))
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

// notPlain reports characters that have more than one spelling in a URL or a meaning of their own.
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
		return netip.Prefix{}, fmt.Errorf("must be a block without bits beyond its length: '%s', not '%s'", p.Masked(),
			text)
	}
	return p, nil
}

// isHost reports whether a server can have the name: an address, or labels of letters, digits, '-' and '_', which names
// inside of clusters may have too.
func isHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	host = strings.TrimSuffix(host, ".")
	return len(host) <= 253 && !slices.ContainsFunc(strings.Split(host, "."), func(label string) bool {
		return label == "" || len(label) > 63 ||
			strings.ContainsFunc(label, func(c rune) bool { return c == '~' || notPlain(c) })
	})
}
