package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// security counts what happens to connections and credentials as such.
type security struct {
	handshakes, badProxyHeaders, slowReaders, floods, overloads, newCredentials, badCredentials metric.Int64Counter
}

// HandshakeFailed counts a client with which no TLS connection could be made.
func (t *Telemetry) HandshakeFailed() { t.security.handshakes.Add(context.Background(), 1) }

// BadProxyHeader counts a connection that a peer did not begin by the PROXY protocol, as it has to.
func (t *Telemetry) BadProxyHeader() { t.security.badProxyHeaders.Add(context.Background(), 1) }

// SlowReaderCut counts a client that was cut because it did not take its answer in time.
func (t *Telemetry) SlowReaderCut() { t.security.slowReaders.Add(context.Background(), 1) }

// Flooded counts a connection of HTTP/2 that ended because its client sent too much that leads to nothing.
func (t *Telemetry) Flooded() { t.security.floods.Add(context.Background(), 1) }

// Overloaded counts what was refused because the memory for requests is used up, or the client's share of it.
func (t *Telemetry) Overloaded(what string) {
	t.security.overloads.Add(context.Background(), 1, metric.WithAttributes(attribute.String("what", what)))
}

// CredentialsRead counts a reading of files with certificates, keys or tokens that have changed. If
// it is not ok the former ones stay in use.
func (t *Telemetry) CredentialsRead(ok bool) {
	counter := t.security.newCredentials
	if !ok {
		counter = t.security.badCredentials
	}
	counter.Add(context.Background(), 1)
}

func (s *security) register(m metric.Meter) error {
	for _, one := range []struct {
		into              *metric.Int64Counter
		name, description string
	}{
		{&s.handshakes, "gateway_tls_handshake_failures", "TLS handshakes with clients that failed."},
		{&s.badProxyHeaders, "gateway_proxy_protocol_errors",
			"Connections that a peer did not begin by the PROXY protocol, as it has to."},
		{&s.slowReaders, "gateway_slow_readers_cut",
			"Clients that were cut because they took their answer too slowly."},
		{&s.floods, "gateway_http2_floods", "Connections of HTTP/2 that ended because the client sent too much that leads to nothing."},
		{&s.newCredentials, "gateway_credentials_reload_success",
			"Files with certificates, keys or tokens that changed and are in use."},
		{&s.badCredentials, "gateway_credentials_reload_failure", "Files with certificates, keys or tokens that changed and cannot be used; those before stayed."},
	} {
		counter, err := m.Int64Counter(one.name, metric.WithDescription(one.description))
		if err != nil {
			return err
		}
		counter.Add(context.Background(), 0) // an alert on its growth must see the first of them
		*one.into = counter
	}
	var err error
	s.overloads, err = m.Int64Counter("gateway_overload_refusals", metric.WithDescription(
		"Connections, requests and streams that were refused because the memory for requests is used up, or the client's share of it."))
	return err
}
