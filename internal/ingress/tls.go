package ingress

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/admission-gateway/gateway/internal/routing"
)

// pairOf reads a Secret of the type kubernetes.io/tls.
func pairOf(s *corev1.Secret) pair {
	chain, key := s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey]
	if s.StringData != nil { // in a file
		if text, found := s.StringData[corev1.TLSCertKey]; found {
			chain = []byte(text)
		}
		if text, found := s.StringData[corev1.TLSPrivateKeyKey]; found {
			key = []byte(text)
		}
	}
	switch {
	case s.Type != corev1.SecretTypeTLS && s.Type != "":
		return pair{problem: fmt.Sprintf("must have the type '%s', not '%s'", corev1.SecretTypeTLS, s.Type)}
	case len(chain) == 0 || len(key) == 0:
		return pair{problem: "must have 'tls.crt' and 'tls.key'"}
	}
	if _, err := tls.X509KeyPair(chain, key); err != nil {
		return pair{problem: "must have a certificate and its key: " + err.Error()}
	}
	return pair{certificate: &routing.Certificate{Chain: chain, Key: key}}
}

// certificate follows a reference to a Secret. A fault has the reason for references that lead nowhere, or
// RefNotPermitted, which is the same word wherever the API has it.
func (c *translation) certificate(from referrer, ref *gatewayv1.SecretObjectReference,
	invalid string) (*routing.Certificate, fault) {
	if or(ref.Group, "") != "" || or(ref.Kind, kindSecret) != kindSecret {
		return nil, fault{invalid, fmt.Sprintf("the kind '%s' of the group '%s' is not supported: only the core kind 'Secret' is", or(ref.Kind, kindSecret), or(ref.Group, ""))}
	}
	name := types.NamespacedName{Namespace: string(or(ref.Namespace, gatewayv1.Namespace(from.namespace))),
		Name: string(ref.Name)}
	if !c.grants.allow(from, kindSecret, name.Namespace, name.Name) {
		return nil, fault{string(gatewayv1.ListenerReasonRefNotPermitted), fmt.Sprintf("no ReferenceGrant in the namespace '%s' lets a %s of the namespace '%s' refer to the Secret '%s'", name.Namespace, from.kind, from.namespace, name.Name)}
	}
	return c.secret(name, invalid)
}

// secret returns the certificate of a Secret.
func (c *translation) secret(name types.NamespacedName, invalid string) (*routing.Certificate, fault) {
	s := c.secrets[name]
	if s == nil {
		return nil, fault{invalid, fmt.Sprintf("there is no Secret '%s' of the type '%s'", name, corev1.SecretTypeTLS)}
	}
	p := c.pairs.of(s, func() pair { return pairOf(s) })
	if p.certificate == nil {
		return nil, fault{invalid, fmt.Sprintf("the Secret '%s' %s", name, p.problem)}
	}
	return p.certificate, fault{}
}

// caKey is the key of the certificates in a ConfigMap.
const caKey = "ca.crt"

func authoritiesOf(m *corev1.ConfigMap) authorities {
	text := []byte(m.Data[caKey])
	if len(text) == 0 {
		text = m.BinaryData[caKey]
	}
	if len(text) == 0 {
		return authorities{problem: "must have 'ca.crt'"}
	}
	n := 0
	for rest := text; ; {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			break
		}
		if b.Type != "CERTIFICATE" {
			return authorities{problem: fmt.Sprintf("must have certificates in 'ca.crt', not '%s'", b.Type)}
		}
		if _, err := x509.ParseCertificate(b.Bytes); err != nil {
			return authorities{problem: "must have certificates in 'ca.crt' that can be read: " + err.Error()}
		}
		n++
	}
	if n == 0 {
		return authorities{problem: "must have certificates in PEM in 'ca.crt'"}
	}
	return authorities{pem: text}
}

// authority returns the certificates of a ConfigMap.
func (c *translation) authority(name types.NamespacedName) ([]byte, string) {
	m := c.configMaps[name]
	if m == nil {
		return nil, fmt.Sprintf("there is no ConfigMap '%s'", name)
	}
	a := c.cas.of(m, func() authorities { return authoritiesOf(m) })
	if a.pem == nil {
		return nil, fmt.Sprintf("the ConfigMap '%s' %s", name, a.problem)
	}
	return a.pem, ""
}

// secure finds the certificates of a listener, and the authorities of its clients' certificates.
func (c *translation) secure(l *listener) {
	t := &routing.ListenerTLS{}
	refs := []gatewayv1.SecretObjectReference{}
	if spec := l.spec.TLS; spec != nil {
		refs = spec.CertificateRefs
		if m := or(spec.Mode, gatewayv1.TLSModeTerminate); m != gatewayv1.TLSModeTerminate && m != "" {
			l.refused = first(l.refused,
				fault{string(gatewayv1.ListenerReasonUnsupportedValue),
					fmt.Sprintf("the mode '%s' of TLS is not supported: only 'Terminate' is", m)})
		}
	}
	kind := kindGateway
	if l.set != nil {
		kind = kindListenerSet
	}
	for i := range refs {
		certificate, f := c.certificate(referrer{kind, l.namespace()}, &refs[i],
			string(gatewayv1.ListenerReasonInvalidCertificateRef))
		if f.is() {
			l.unresolved = first(l.unresolved, f)
			c.listenerProblem(l, fmt.Sprintf(".tls.certificateRefs[%d]", i), f.message)
			continue
		}
		t.Certificates = append(t.Certificates, *certificate)
	}
	if len(refs) == 0 {
		l.unresolved = first(l.unresolved, fault{string(gatewayv1.ListenerReasonInvalidCertificateRef),
			"the listener names no certificate"})
		c.listenerProblem(l, ".tls.certificateRefs", "the listener names no certificate")
	}
	if len(t.Certificates) == 0 {
		l.lacks = first(l.lacks,
			fault{string(gatewayv1.ListenerReasonInvalid), "the listener has no certificate that can be used"})
	}
	c.validateClients(l, t)
	l.tls = t
}

// validateClients has a listener ask clients for certificates, if its Gateway says so.
func (c *translation) validateClients(l *listener, t *routing.ListenerTLS) {
	g := l.gateway
	if g.Spec.TLS == nil || g.Spec.TLS.Frontend == nil {
		return
	}
	of, path := g.Spec.TLS.Frontend.Default.Validation, "spec.tls.frontend.default.validation"
	for i := range g.Spec.TLS.Frontend.PerPort {
		if p := &g.Spec.TLS.Frontend.PerPort[i]; p.Port == l.spec.Port {
			of, path = p.TLS.Validation, fmt.Sprintf("spec.tls.frontend.perPort[%d].tls.validation", i)
		}
	}
	if of == nil {
		return
	}
	for i := range of.CACertificateRefs {
		text, f := c.clientCA(g, &of.CACertificateRefs[i])
		if f.is() {
			l.unresolved = first(l.unresolved, f)
			c.problem(kindGateway, g.Namespace, g.Name, fmt.Sprintf("%s.caCertificateRefs[%d]", path, i), f.message)
			continue
		}
		t.ClientCAs = append(append(t.ClientCAs, bytes.TrimSpace(text)...), '\n')
	}
	if len(t.ClientCAs) == 0 {
		l.refused = first(l.refused, fault{string(gatewayv1.ListenerReasonNoValidCACertificate),
			"no certificate of an authority of clients' certificates can be used"})
	}
	t.LetsStrangersIn = of.Mode == gatewayv1.AllowInsecureFallback
}

func (c *translation) clientCA(g *gateway, ref *gatewayv1.ObjectReference) ([]byte, fault) {
	if ref.Group != "" || ref.Kind != kindConfigMap {
		return nil, fault{string(gatewayv1.ListenerReasonInvalidCACertificateKind), fmt.Sprintf("the kind '%s' of the group '%s' is not supported: only the core kind 'ConfigMap' is", ref.Kind, ref.Group)}
	}
	name := types.NamespacedName{Namespace: string(or(ref.Namespace, gatewayv1.Namespace(g.Namespace))),
		Name: string(ref.Name)}
	if !c.grants.allow(referrer{kindGateway, g.Namespace}, kindConfigMap, name.Namespace, name.Name) {
		return nil, fault{string(gatewayv1.ListenerReasonRefNotPermitted), fmt.Sprintf("no ReferenceGrant in the namespace '%s' lets a Gateway of the namespace '%s' refer to the ConfigMap '%s'", name.Namespace, g.Namespace, name.Name)}
	}
	text, problem := c.authority(name)
	if problem != "" {
		return nil, fault{string(gatewayv1.ListenerReasonInvalidCACertificateRef), problem}
	}
	return text, fault{}
}
