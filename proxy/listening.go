package proxy

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
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
}

// shownCertificates are those of a listener.
type shownCertificates struct {
	lease  lease
	files  *credentials.Watcher
	server *credentials.Value[*credentials.Server]
}

// newListening makes the listeners of the configuration and of a table, which may be nil. Certificates that a Gateway before has for the same
// settings are taken over from it.
func (s *common) newListening(c *config.Configuration, table *routing.Table, before *Gateway) (_ *listening, err error) {
	l := &listening{certificates: map[string]*shownCertificates{}}
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
			if err != nil {
				s.log.Error("a listener cannot be used, and takes no requests", "listener", made.Name, "cause", err)
				continue
			}
			made.Routes = i + 1
			all = append(all, made)
		}
	}
	var errs []error
	if l.set, errs = listeners.New(all); len(errs) > 0 && len(all) == configured {
		return nil, errors.Join(errs...) // cannot be: the configuration was checked
	}
	for _, err := range errs {
		s.log.Error("listeners cannot share an address", "cause", err)
	}
	return l, nil
}

// configuredListener makes a listener of the configuration.
func (s *common) configuredListener(l *listening, c *config.Configuration, one *config.Listener, before *Gateway) (*listeners.Listener, error) {
	made := &listeners.Listener{Name: one.Name, Addresses: []string{one.Listen}, Hosts: one.Hosts}
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
	made.TLS, err = s.show(l, before, fmt.Sprintf("%s: %+v", one.Name, *t), func(own *credentials.Watcher) (*credentials.Value[*credentials.Server], error) {
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
func (s *common) tableListener(l *listening, c *config.Configuration, one *routing.Listener, before *Gateway) (*listeners.Listener, error) {
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
	made.TLS, err = s.show(l, before, fmt.Sprintf("%s: %s %x", made.Name, made.Clients, sum.Sum(nil)), func(own *credentials.Watcher) (*credentials.Value[*credentials.Server], error) {
		return credentials.NewServer(own, made.Name, held)
	})
	return made, err
}

// show returns what a listener shows of itself: what a Gateway before has for the same settings, or what is made now.
func (s *common) show(l *listening, before *Gateway, settings string, begin func(files *credentials.Watcher) (*credentials.Value[*credentials.Server], error)) (*credentials.Value[*credentials.Server], error) {
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
