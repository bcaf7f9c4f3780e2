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

// ListenerTLS is how a listener proves who it is, and how it asks clients to. Its files are read
// again when they change. In a configuration file, a path is relative to its directory.
type ListenerTLS struct {
	// CertFile is a PEM file with the certificate, and the intermediate ones after it.
	CertFile string `json:"certFile"`
	// KeyFile is a PEM file with its key.
	KeyFile string `json:"keyFile"`
	// Certificates are further ones. A client gets the one for the name that it asks for (SNI): one with that
	// name, else one with a wildcard that fits, else that of CertFile.
	Certificates []CertificateFiles `json:"certificates"`
	// ClientCAFile is a PEM file with the authorities that sign the certificates of clients.
	ClientCAFile string `json:"clientCAFile"`
	// ClientCertificates says how clients are asked for them: Request if there is a ClientCAFile,
	// Ignore otherwise.
	ClientCertificates ClientCertificates `json:"clientCertificates"`
	// MinVersion is the least version of TLS.
	MinVersion TLSVersion `json:"minVersion"`
}

// CertificateFiles name a certificate, with the intermediate ones after it, and its key, in PEM.
type CertificateFiles struct {
	// CertFile is a PEM file with the certificate, and the intermediate ones after it.
	CertFile string `json:"certFile"`
	// KeyFile is a PEM file with its key.
	KeyFile string `json:"keyFile"`
}

// UpstreamTLS is how the gateway knows the servers of a backend, and what it shows them of itself.
// Its files are read again when they change. In a configuration file, a path is relative to its
// directory.
type UpstreamTLS struct {
	// CAFile is a PEM file with the authorities that sign the certificates of the servers; empty means the system's.
	CAFile string `json:"caFile"`
	// CertFile and KeyFile are PEM files with the certificate that the gateway shows on its own
	// account, and its key. Requests of clients go by connections that do not show it, unless
	// Credentials say that the gateway passes the user to the backend.
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
	// ServerName is the name that the certificates must be for; empty means the host of the endpoint.
	ServerName string `json:"serverName"`
	// InsecureSkipTLSVerify does not verify the backend's certificate.
	InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify"`
}

// files are the names of files in t.
func (t *UpstreamTLS) files() []*string {
	if t == nil {
		return nil
	}
	return []*string{&t.CAFile, &t.CertFile, &t.KeyFile}
}

// serviceAccount checks how the gateway knows a backend and is known there.
func (v *validator) serviceAccount(path string, u *UpstreamSpec) {
	if u.Kubeconfig != "" {
		for _, one := range []struct {
			field string
			set   bool
		}{{"endpoints", len(u.Endpoints) > 0}, {"tls", u.TLS != nil}, {"tokenFile", u.TokenFile != ""}} {
			if one.set {
				v.check(path+"."+one.field, fmt.Sprintf("must not be set where `%s.kubeconfig` is, which says it",
					path))
			}
		}
		return
	}
	if u.KubeconfigContext != "" {
		v.check(path+".kubeconfigContext", fmt.Sprintf("must not be set without `%s.kubeconfig`", path))
	}
	t := u.TLS
	if t == nil {
		return
	}
	path += ".tls"
	if len(u.Endpoints) > 0 && scheme(u.Endpoints[0]) == "http" {
		v.check(path, "must not be set where the endpoints have the scheme 'http'")
	}
	v.clientTLS(path, t)
}

// clientTLS checks how connections to a server are made by TLS.
func (v *validator) clientTLS(path string, t *UpstreamTLS) {
	switch {
	case t.CertFile != "" && t.KeyFile == "":
		v.check(path+".keyFile", fmt.Sprintf("Required value: must name the key of `%s.certFile`", path))
	case t.KeyFile != "" && t.CertFile == "":
		v.check(path+".certFile", fmt.Sprintf("Required value: must name the certificate of `%s.keyFile`", path))
	}
	if t.InsecureSkipTLSVerify && t.CAFile != "" {
		v.check(path+".caFile", fmt.Sprintf("must not be set where `%s.insecureSkipTLSVerify` is true", path))
	}
	v.check(path+".serverName", hostProblem(t.ServerName))
}

// setDefaults sets the defaults of fields that the file leaves out.
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
	for i, c := range t.Certificates {
		v.required(fmt.Sprintf("%s.certificates[%d].certFile", path, i), c.CertFile)
		v.required(fmt.Sprintf("%s.certificates[%d].keyFile", path, i), c.KeyFile)
	}
	switch {
	case !slices.Contains(clientCertificates, t.ClientCertificates):
		v.check(path+".clientCertificates", notOneOf(string(t.ClientCertificates), clientCertificates))
	case t.ClientCertificates != IgnoreCertificates && t.ClientCAFile == "":
		v.check(path+".clientCAFile", fmt.Sprintf("Required value: must name the authorities where `%s.clientCertificates` is '%s'", path, t.ClientCertificates))
	case t.ClientCertificates == IgnoreCertificates && t.ClientCAFile != "":
		v.check(path+".clientCAFile", fmt.Sprintf("must not be set where `%s.clientCertificates` is '%s'", path,
			IgnoreCertificates))
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
	files := []*string{&t.CertFile, &t.KeyFile, &t.ClientCAFile}
	for i := range t.Certificates {
		files = append(files, &t.Certificates[i].CertFile, &t.Certificates[i].KeyFile)
	}
	return files
}
