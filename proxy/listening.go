package proxy

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/listeners"
	"github.com/admission-gateway/gateway/internal/routing"
)

// listening is where a Gateway takes requests from.
type listening struct {
	set *listeners.Set
	// isStrict is set if a listener asks browsers to use https alone.
	isStrict     bool
	certificates map[string]*shownCertificates // by their settings
	all          []*listeners.Listener         // also those that take no requests
	// problems are why listeners of a table take no requests, or not on all of their addresses, by their names.
	problems map[string]error
}

// shownCertificates are those of a listener.
type shownCertificates struct {
	lease  lease
	files  *credentials.Watcher
	server *credentials.Value[*credentials.Server]
}

// newListening makes the listeners of the configuration and of a table, which may be nil. Certificates that a Gateway
// before has for the same settings are taken over from it.
func (s *common) newListening(c *config.Configuration, table *routing.Table,
	before *Gateway) (_ *listening, err error) {
	l := &listening{certificates: map[string]*shownCertificates{}, problems: map[string]error{}}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	var all []*listeners.Listener
	for i, one := range c.AllListeners() {
		made, err := s.configuredListener(l, c, &one, before)
		if err != nil {
			if one.Name == config.FirstListener {
				return nil, fmt.Errorf("tls: %w", err)
			}
			return nil, fmt.Errorf("listeners[%d].tls: %w", i-len(c.AllListeners())+len(c.Listeners), err)
		}
		l.isStrict = l.isStrict || made.StrictTransport != ""
		all = append(all, made)
	}
	configured := len(all)
	if table != nil {
		for i := range table.Listeners {
			made, err := s.tableListener(l, c, &table.Listeners[i], before)
			made.Routes = i + 1
			l.all = append(l.all, made)
			if err != nil {
				l.problems[made.Name] = err
				continue
			}
			all = append(all, made)
		}
	}
	l.all = append(all[:configured:configured], l.all...)
	var conflicts []*listeners.Conflict
	l.set, conflicts = listeners.New(all)
	for _, one := range conflicts {
		if one.Listener.Routes == 0 {
			return nil, one // cannot be: the configuration was checked
		}
		l.problems[one.Listener.Name] = one
	}
	return l, nil
}

// A Listener describes to operators where requests come from.
type Listener struct {
	Name      string
	Addresses []string
	HasTLS    bool
	// AsksClients says that it asks clients for certificates, HasProxyProtocol that load balancers begin connections
	// with the PROXY protocol, Redirects that it sends clients elsewhere by https.
	AsksClients, HasProxyProtocol, Redirects bool
	// StrictTransport is the value of Strict-Transport-Security in its answers; "" is none.
	StrictTransport string
	// Hosts are those whose requests it takes; none is any.
	Hosts []string
	// Routes is the number of objects, or of routes of the configuration, that take requests from it.
	Routes int
	// Problem is why it takes no requests, or not on all of its addresses; "" if it does.
	Problem string
}

// Listeners are those of the configuration, and then those of the routing table. closed has the addresses on which
// nothing listens, and why.
func (g *Gateway) Listeners(closed map[string]error) []Listener {
	routes := make([]int, len(g.routes.listeners)+1)
	if g.routing != nil {
		counted := map[[4]string]bool{}
		for i := range g.routing.Routes {
			r := &g.routing.Routes[i]
			for _, a := range r.Attachments {
				if id := [4]string{strconv.Itoa(a.Listener), r.Kind, r.Namespace, r.Name}; !counted[id] {
					counted[id] = true
					routes[a.Listener+1]++
				}
			}
		}
	}
	routes[ownListener] = g.routes.own
	problems := g.Unserved(closed)
	hasTLS := func(l *listeners.Listener) bool {
		return l.TLS != nil || l.Routes > 0 && g.routes.listeners[l.Routes-1].TLS != nil
	}
	all := make([]Listener, len(g.listening.all))
	for i, l := range g.listening.all {
		all[i] = Listener{
			Name: l.Name, Addresses: l.Addresses, HasTLS: hasTLS(l), AsksClients: l.Clients != "",
			HasProxyProtocol: len(l.Proxies) > 0,
			Redirects:        l.Redirect != nil, StrictTransport: l.StrictTransport, Hosts: l.Hosts, Routes: routes[l.Routes],
			Problem: problems[l.Name],
		}
	}
	return all
}

// ListenerCount is the number of Listeners.
func (g *Gateway) ListenerCount() int { return len(g.listening.all) }

// Unserved returns the listeners that take no requests, or not on all of their addresses, by their names, and why.
// closed has the addresses on which nothing listens.
func (g *Gateway) Unserved(closed map[string]error) map[string]string {
	return g.listening.unserved(closed)
}

func (l *listening) unserved(closed map[string]error) map[string]string {
	all := map[string]string{}
	for name, err := range l.problems {
		all[name] = err.Error()
	}
	for _, one := range l.all {
		for _, a := range one.Addresses {
			if err := closed[a]; err != nil && all[one.Name] == "" {
				all[one.Name] = err.Error()
			}
		}
	}
	return all
}

// Judge describes the listeners that a table would have beside a configuration: where they listen, and why some take no
// requests.
func (g *Gateway) Judge(c *config.Configuration, table *routing.Table) ([]Listener, error) {
	l, err := g.newListening(c, table, g)
	if err != nil {
		return nil, err
	}
	defer l.close()
	problems := l.unserved(nil)
	var all []Listener
	for _, one := range l.all {
		if one.Routes > 0 {
			all = append(all, Listener{Name: one.Name, Addresses: one.Addresses, Problem: problems[one.Name]})
		}
	}
	return all, nil
}

// configuredListener makes a listener of the configuration.
func (s *common) configuredListener(l *listening, c *config.Configuration, one *config.Listener,
	before *Gateway) (*listeners.Listener, error) {
	made := &listeners.Listener{Name: one.Name, Addresses: []string{one.Listen}, Hosts: one.Hosts,
		ServesHalf: one.ServesHalfClosed()}
	if r := one.RedirectToHTTPS; r != nil {
		made.Redirect = &listeners.Redirect{Code: int(r.Code), Port: int(r.Port)}
	}
	if one.HSTS != nil {
		made.StrictTransport = one.HSTS.Value()
	}
	if p := one.ProxyProtocol; p != nil {
		for _, from := range p.From {
			made.Proxies = append(made.Proxies, from.Prefix)
		}
	}
	t := one.TLS
	if t == nil {
		return made, nil
	}
	if len(t.Certificates) == 0 {
		made.Certificate = t.CertFile
	}
	if t.ClientCertificates != config.IgnoreCertificates {
		made.Clients = string(t.ClientCertificates) + " " + t.ClientCAFile
	}
	var err error
	made.TLS, err = s.show(l, before, fmt.Sprintf("%s: %+v", one.Name, *t),
		func(own *credentials.Watcher) (*credentials.Value[*credentials.Server], error) {
			files := TLSFiles(t)
			files.HasHTTP2 = c.HTTP2.Enabled
			name := "the listener '" + one.Name + "'"
			if one.Name == config.FirstListener {
				name = "the public listener"
			}
			return credentials.WatchServer(own, name, files)
		})
	return made, err
}

// tableListener makes a listener of a table.
func (s *common) tableListener(l *listening, c *config.Configuration, one *routing.Listener,
	before *Gateway) (*listeners.Listener, error) {
	made := &listeners.Listener{Name: one.Gateway + "/" + one.Section}
	port := strconv.Itoa(int(one.Port))
	for _, a := range one.Addresses {
		made.Addresses = append(made.Addresses, netip.AddrPortFrom(a, uint16(one.Port)).String())
	}
	if len(made.Addresses) == 0 {
		made.Addresses = []string{net.JoinHostPort("", port)}
	}
	if one.Host != "" {
		made.Hosts = []string{one.Host}
	}
	t := one.TLS
	if t == nil {
		return made, nil
	}
	held := &credentials.ServerPEM{ClientCAs: t.ClientCAs, MinVersion: tls.VersionTLS12, HasHTTP2: c.HTTP2.Enabled}
	sum := sha256.New()
	for _, pair := range t.Certificates {
		held.Certificates = append(held.Certificates, credentials.CertPEM{Chain: pair.Chain, Key: pair.Key})
		for _, part := range [][]byte{pair.Chain, pair.Key} {
			one := sha256.Sum256(part)
			_, _ = sum.Write(one[:]) // a hash takes everything
		}
	}
	if len(t.Certificates) == 1 {
		made.Certificate = fmt.Sprintf("%x", sha256.Sum256(t.Certificates[0].Chain))
	}
	if len(t.ClientCAs) > 0 {
		held.ClientAuth = tls.RequireAndVerifyClientCert
		if t.LetsStrangersIn {
			held.ClientAuth = tls.RequestClientCert
		}
		made.Clients = fmt.Sprintf("%v %x", held.ClientAuth, sha256.Sum256(t.ClientCAs))
	}
	var err error
	made.TLS, err = s.show(l, before, fmt.Sprintf("%s: %s %x", made.Name, made.Clients, sum.Sum(nil)),
		func(own *credentials.Watcher) (*credentials.Value[*credentials.Server], error) {
			return credentials.NewServer(own, made.Name, held)
		})
	return made, err
}

// show returns what a listener shows of itself: what a Gateway before has for the same settings, or what is made now.
func (s *common) show(l *listening, before *Gateway, settings string,
	begin func(files *credentials.Watcher) (*credentials.Value[*credentials.Server], error)) (
	*credentials.Value[*credentials.Server], error) {
	shown := l.certificates[settings]
	if shown != nil {
		return shown.server, nil
	}
	if before != nil {
		shown = before.listening.certificates[settings]
	}
	if shown == nil {
		shown = &shownCertificates{files: s.files.Part()}
		var err error
		if shown.server, err = begin(shown.files); err != nil {
			shown.files.Close()
			return nil, err
		}
	}
	shown.lease.hold()
	l.certificates[settings] = shown
	return shown.server, nil
}

// close lets go of the certificates.
func (l *listening) close() {
	if l == nil {
		return
	}
	for _, shown := range l.certificates {
		if shown.lease.release() {
			shown.files.Close()
		}
	}
}

// TLSFiles are the files of a listener that speaks TLS.
func TLSFiles(t *config.ListenerTLS) credentials.ServerFiles {
	f := credentials.ServerFiles{Cert: t.CertFile, Key: t.KeyFile, ClientCA: t.ClientCAFile,
		MinVersion: tls.VersionTLS12}
	if t.MinVersion == config.VersionTLS13 {
		f.MinVersion = tls.VersionTLS13
	}
	for _, c := range t.Certificates {
		f.More = append(f.More, credentials.CertFiles{Cert: c.CertFile, Key: c.KeyFile})
	}
	switch t.ClientCertificates {
	case config.RequestCertificates:
		// The gateway verifies the certificates itself: a certificate that no trusted authority
		// signed proves nothing, which an answer can explain better than a failed handshake.
		f.ClientAuth = tls.RequestClientCert
	case config.RequireCertificates:
		f.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return f
}
