package proxy

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// backend is an upstream as requests see it.
type backend struct {
	name string
	// client carries the requests of clients, own those that the gateway makes on its own account. They are two where the
	// account has a certificate: the backend takes whatever comes by a connection that shows it for the gateway's own.
	client, own *upstream.Client
	// account is who the gateway is to the backend.
	account       *credentials.Account
	accountFailed func(error) // is told why it cannot be had
	// host is what requests of the gateway's own are for.
	host string
	// credentials says how it is told who asks.
	credentials config.Credentials
	// plain backends know nothing of Kubernetes' conventions; the gateway supplies them.
	plain bool
	// upgrades are where clients may go on in another protocol.
	upgrades *upgrades
	// patience is how long its answer may take, up to the end of the head.
	patience time.Duration
}

// routes is the immutable table from host and path to backend.
type routes struct {
	// table has named hosts before any host and longer prefixes before shorter ones: the first that fits is the one.
	table    []route
	backends []*backend
}

type route struct {
	host, prefix string
	backend      *backend
}

// newRoutes makes the backends of the configuration and the table that leads to them.
func (g *Gateway) newRoutes(c *config.Configuration, files *credentials.Watcher) (_ *routes, err error) {
	r := &routes{}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	byName := make(map[string]*backend, len(c.Upstreams))
	for _, u := range c.Upstreams {
		b := &backend{name: u.Name, host: hostOf(u.Endpoints[0]), credentials: u.Credentials, upgrades: newUpgrades(u.AllowedUpgrades()), plain: u.Dialect == config.Plain, patience: u.ResponseTimeoutSeconds.Duration()}
		if err := g.connect(b, &u, files); err != nil {
			return nil, fmt.Errorf("upstream '%s': %w", u.Name, err)
		}
		byName[u.Name] = b
		r.backends = append(r.backends, b)
	}
	for _, one := range c.Routes {
		b := byName[one.Upstream]
		if b == nil {
			return nil, fmt.Errorf("a route names the upstream '%s', which must be one of `upstreams`", one.Upstream)
		}
		r.table = append(r.table, route{one.Host, strings.TrimSuffix(one.PathPrefix, "/"), b})
	}
	slices.SortStableFunc(r.table, func(a, b route) int {
		return cmp.Or(cmp.Compare(min(len(b.host), 1), min(len(a.host), 1)), cmp.Compare(len(b.prefix), len(a.prefix)))
	})
	return r, nil
}

// hostOf is the host and port of a base URL.
func hostOf(endpoint string) string {
	_, host, _ := strings.Cut(endpoint, "://")
	return strings.TrimSuffix(host, "/")
}

// find returns the backend of a request; nil where no route leads to one.
func (r *routes) find(host []byte, path string) *backend {
	if len(r.table) == 1 && r.table[0].host == "" && r.table[0].prefix == "" {
		return r.table[0].backend
	}
	host = withoutPort(host)
	for i := range r.table {
		one := &r.table[i]
		if (one.host == "" || equalFold(host, one.host)) && under(path, one.prefix) {
			return one.backend
		}
	}
	return nil
}

// under tells whether a path is the prefix or below it, whole segments compared.
func under(path, prefix string) bool {
	return strings.HasPrefix(path, prefix) && (len(path) == len(prefix) || prefix == "" || path[len(prefix)] == '/')
}

func withoutPort(host []byte) []byte {
	if i := bytes.LastIndexByte(host, ':'); i >= 0 && bytes.IndexByte(host[i:], ']') < 0 {
		host = host[:i]
	}
	return host
}

func equalFold(a []byte, b string) bool { return len(a) == len(b) && strings.EqualFold(str(a), b) }

func (r *routes) close() {
	for _, b := range r.backends {
		b.close()
	}
}
