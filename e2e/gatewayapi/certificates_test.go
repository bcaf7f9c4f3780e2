package gatewayapi

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// secure is a Gateway that redirects to TLS, whose certificate an issuer is asked for.
const secure = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: front, namespace: $NS, annotations: {cert-manager.io/issuer: letsencrypt}}
spec:
  gatewayClassName: $NS
  listeners:
  - {name: http, port: 80, protocol: HTTP, hostname: shop.example.com}
  - name: https
    port: 443
    protocol: HTTPS
    hostname: shop.example.com
    tls: {certificateRefs: [{name: shop-tls}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: redirect, namespace: $NS}
spec:
  parentRefs: [{name: front, sectionName: http}]
  rules: [{filters: [{type: RequestRedirect, requestRedirect: {scheme: https, statusCode: 301}}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: $NS}
spec:
  parentRefs: [{name: front, sectionName: https}]
  hostnames: [shop.example.com]
  rules: [{backendRefs: [{name: echo, port: 80}]}]
`

// solver is the route that cert-manager makes for a challenge, and takes away after it.
const solver = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: cm-acme-http-solver-x7k2p, namespace: $NS, labels: {acme.cert-manager.io/http01-solver: "true"}}
spec:
  parentRefs: [{name: front}]
  hostnames: [shop.example.com]
  rules:
  - matches: [{path: {type: Exact, value: /.well-known/acme-challenge/token}}]
    backendRefs: [{name: echo, port: 80, weight: 1}]
`

// cert-manager works with the gateway in front: a challenge by HTTP-01 is answered past the redirect, the Secret
// appears late, and a renewed certificate comes into force while no request fails.
func TestCertificateAppearsLate(t *testing.T) {
	with := func(text string) string { return strings.ReplaceAll(text, "$NS", "issued") }
	all := with(class("issued") + "---" + echoes + "---" + secure)
	apply(t, all)
	t.Cleanup(func() { remove(t, all) })
	startGateway(t, gatewayOptions{controller: "issued", pool: []string{"10.100.4.0/24"}})
	address := addressOfListener(t, "issued", "front", "http")
	plain := "http://" + address + "/.well-known/acme-challenge/token"
	awaitAnswer(t, once, plain, "shop.example.com", http.StatusMovedPermanently)
	if c, err := tls.Dial("tcp", address+":443",
		&tls.Config{ServerName: "shop.example.com", InsecureSkipVerify: true}); err == nil {
		//nolint:gosec // a test's own server
		_ = c.Close()
		t.Error("TLS is spoken without a certificate")
	}

	apply(t, with(solver))
	if body := awaitAnswer(t, once, plain, "shop.example.com", http.StatusOK); !strings.Contains(body,
		"acme-challenge/token") {
		t.Errorf("the challenge is answered with %s", body)
	}
	remove(t, with(solver))
	awaitAnswer(t, once, plain, "shop.example.com", http.StatusMovedPermanently)

	issuer := newIssuer(t)
	issuer.issue(t, "issued", "shop-tls", "shop.example.com", 1)
	trusting := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: issuer.pool, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address+":443")
		},
	}}
	awaitAnswer(t, trusting, "https://shop.example.com/", "", http.StatusOK)

	l := startLoadBy(t, trusting, 2, "https://shop.example.com/", "")
	l.await(t, 20)
	issuer.issue(t, "issued", "shop-tls", "shop.example.com", 2)
	eventually(t, "the renewed certificate is shown", func() bool {
		c, err := tls.Dial("tcp", address+":443", &tls.Config{ServerName: "shop.example.com", RootCAs: issuer.pool,
			MinVersion: tls.VersionTLS12})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64() == 2
	})
	l.await(t, 20)
	l.allSucceeded(t)
}

// addressOfListener waits until a listener is programmed, although the whole Gateway may not be, and returns the
// address.
func addressOfListener(t *testing.T, namespace, name, listener string) (address string) {
	t.Helper()
	c := newClient(t)
	eventually(t, "the listener "+listener+" is programmed", func() bool {
		var g gatewayv1.Gateway
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, &g); err != nil ||
			len(g.Status.Addresses) == 0 {
			return false
		}
		address = g.Status.Addresses[0].Value
		for _, l := range g.Status.Listeners {
			for _, condition := range l.Conditions {
				if string(l.Name) == listener && condition.Type == string(gatewayv1.ListenerConditionProgrammed) &&
					condition.Status == metav1.ConditionTrue {
					return true
				}
			}
		}
		return false
	})
	return address
}

// An issuer signs certificates.
type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pool        *x509.CertPool
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "issuer"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key, pool: x509.NewCertPool()}
	if i.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	i.pool.AddCert(i.certificate)
	return i
}

// issue writes a certificate for a host into a Secret.
func (i *issuer) issue(t *testing.T, namespace, name, host string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: []string{host}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, i.certificate, &key.PublicKey, i.key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Type: corev1.SecretTypeTLS, Data: map[string][]byte{
			"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
		}}
	c := newClient(t)
	if serial == 1 {
		err = c.Create(t.Context(), secret)
	} else {
		err = c.Update(t.Context(), secret)
	}
	if err != nil {
		t.Fatal(err)
	}
}
