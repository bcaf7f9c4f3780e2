package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/handover"
	"github.com/admission-gateway/gateway/proxy"
)

// errInUse is the error of an address on which something listens.
var errInUse = errors.New("another program does already")

// listenOn listens on a TCP address, also one that a gateway which drains still listens on, or says in a sentence why
// not and which flag chooses another.
func listenOn(claims *handover.Claims, address, flag string) (*handover.Listener, error) {
	l, err := claims.Listen(address)
	var dns *net.DNSError
	var form *net.AddrError
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another address with %s", address, errInUse, flag)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("cannot listen on %s: this user may not use that port; choose one above 1023 with %s", address, flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("cannot listen on %s: this machine does not have that address; choose another with %s", address, flag)
	case errors.As(err, &dns):
		return nil, fmt.Errorf("cannot listen on %s: no address is known for '%s'; choose another with %s", address,
			dns.Name, flag)
	case errors.As(err, &form):
		return nil, usageError("%s: must be a host and a port such as '127.0.0.1:8080', not '%s'", flag, address)
	}
	return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
}

// secured puts TLS over the admin listener if the configuration asks for it.
func (n *node) secured(l net.Listener) (net.Listener, error) {
	t := n.config.Load().Admin.TLS
	if t == nil {
		return l, nil
	}
	server, err := credentials.WatchServer(n.files, "the admin listener", proxy.TLSFiles(t))
	if err != nil {
		return nil, errors.Join(usageError("admin.tls: %w", err), l.Close())
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12, // the files, which are read for each connection, may ask for a greater one
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return server.Get().Config, nil
		},
	}), nil
}

// stopSignals are those by which a process is asked to end, for as long as ignore is not called.
func stopSignals() (signals <-chan os.Signal, ignore func()) {
	c := make(chan os.Signal, 2)
	signal.Notify(c, syscall.SIGTERM, os.Interrupt)
	return c, func() { signal.Stop(c) }
}
