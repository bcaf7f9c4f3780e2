package config

import (
	"fmt"
	"slices"
)

// TLSVersion is the least version of TLS that is spoken, as Kubernetes' components name them.
type TLSVersion string

// The versions of TLS that are safe.
const (
	VersionTLS12 TLSVersion = "VersionTLS12"
	VersionTLS13 TLSVersion = "VersionTLS13"
)

// ClientCertificates says how clients are asked for certificates.
type ClientCertificates string

// The ways to ask for them.
const (
	// IgnoreCertificates asks for none.
	IgnoreCertificates ClientCertificates = "Ignore"
	// RequestCertificates asks, and serves clients without one. One that no authority has signed is as good as none.
	RequestCertificates ClientCertificates = "Request"
	// RequireCertificates ends the handshake with clients that do not show one of the authorities'.
	RequireCertificates ClientCertificates = "Require"
)

var (
	tlsVersions        = []TLSVersion{VersionTLS12, VersionTLS13}
	clientCertificates = []ClientCertificates{IgnoreCertificates, RequestCertificates, RequireCertificates}
)

// ListenerTLS is how a listener proves who it is, and how it asks clients to. Its files are read again when they change;
// those of a configuration file are relative to its directory.
type ListenerTLS struct {
	// CertFile is a PEM file with the certificate, and the intermediate ones after it.
	CertFile string `json:"certFile"`
	// KeyFile is a PEM file with its key.
	KeyFile string `json:"keyFile"`
	// ClientCAFile is a PEM file with the authorities that sign the certificates of clients.
	ClientCAFile string `json:"clientCAFile"`
	// ClientCertificates says how clients are asked for them: Request where there is a ClientCAFile, Ignore elsewhere.
	ClientCertificates ClientCertificates `json:"clientCertificates"`
	// MinVersion is the least version of TLS.
	MinVersion TLSVersion `json:"minVersion"`
}

// setDefaults fills in what the file leaves out.
func (t *ListenerTLS) setDefaults() {
	if t.MinVersion == "" {
		t.MinVersion = VersionTLS12
	}
	if t.ClientCertificates == "" && t.ClientCAFile != "" {
		t.ClientCertificates = RequestCertificates
	} else if t.ClientCertificates == "" {
		t.ClientCertificates = IgnoreCertificates
	}
}

// listenerTLS checks how a listener speaks TLS; nil is plain HTTP.
func (v *validator) listenerTLS(path string, t *ListenerTLS) {
	if t == nil {
		return
	}
	t.setDefaults()
	v.required(path+".certFile", t.CertFile)
	v.required(path+".keyFile", t.KeyFile)
	switch {
	case !slices.Contains(clientCertificates, t.ClientCertificates):
		v.check(path+".clientCertificates", notOneOf(string(t.ClientCertificates), clientCertificates))
	case t.ClientCertificates != IgnoreCertificates && t.ClientCAFile == "":
		v.check(path+".clientCAFile", fmt.Sprintf("Required value: must name the authorities where `%s.clientCertificates` is '%s'", path, t.ClientCertificates))
	case t.ClientCertificates == IgnoreCertificates && t.ClientCAFile != "":
		v.check(path+".clientCAFile", fmt.Sprintf("must not be set where `%s.clientCertificates` is '%s'", path, IgnoreCertificates))
	}
	if !slices.Contains(tlsVersions, t.MinVersion) {
		v.check(path+".minVersion", notOneOf(string(t.MinVersion), tlsVersions))
	}
}

func (v *validator) required(path, value string) {
	if value == "" {
		v.check(path, "Required value")
	}
}

// files are the names of files in t.
func (t *ListenerTLS) files() []*string {
	if t == nil {
		return nil
	}
	return []*string{&t.CertFile, &t.KeyFile, &t.ClientCAFile}
}
