package ingress

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// tlsPolicies reads the BackendTLSPolicies. Of those for one target the first one counts.
func (c *translation) tlsPolicies() map[policyTarget][]*tlsPolicy {
	all := map[policyTarget][]*tlsPolicy{}
	for _, o := range byAge(c.in.BackendTLSPolicies) {
		p := &tlsPolicy{BackendTLSPolicy: o}
		c.authoritiesOf(p)
		for i := range o.Spec.TargetRefs {
			ref := &o.Spec.TargetRefs[i]
			path := fmt.Sprintf("spec.targetRefs[%d]", i)
			if ref.Group != "" || ref.Kind != kindService {
				c.problem(kindBackendTLSPolicy, o.Namespace, o.Name, path, fmt.Sprintf("the kind '%s' of the group '%s' is not supported: only the core kind 'Service' is", ref.Kind, ref.Group))
				continue
			}
			t := policyTarget{types.NamespacedName{Namespace: o.Namespace, Name: string(ref.Name)},
				string(or(ref.SectionName, ""))}
			if has := all[t]; len(has) > 0 {
				p.conflict = fault{string(gatewayv1.PolicyReasonConflicted), fmt.Sprintf("the BackendTLSPolicy '%s' is older, and about the same ports of the Service '%s'", has[0].Name, ref.Name)}
				c.problem(kindBackendTLSPolicy, o.Namespace, o.Name, path, p.conflict.message)
			} else {
				p.wins = true
			}
			all[t] = append(all[t], p)
		}
	}
	return all
}

// authoritiesOf reads how servers are known.
func (c *translation) authoritiesOf(p *tlsPolicy) {
	v := &p.Spec.Validation
	p.tls.ServerName = string(v.Hostname)
	for i := range v.SubjectAltNames {
		switch s := &v.SubjectAltNames[i]; s.Type {
		case gatewayv1.HostnameSubjectAltNameType:
			p.tls.Names = append(p.tls.Names, string(s.Hostname))
		case gatewayv1.URISubjectAltNameType:
			p.tls.Names = append(p.tls.Names, string(s.URI))
		default:
			p.refuse(c, fmt.Sprintf("spec.validation.subjectAltNames[%d].type", i), gatewayv1.PolicyReasonInvalid,
				fmt.Sprintf("the type '%s' is not supported", s.Type))
		}
	}
	for i := range v.CACertificateRefs {
		ref, path := &v.CACertificateRefs[i], fmt.Sprintf("spec.validation.caCertificateRefs[%d]", i)
		if ref.Group != "" || ref.Kind != kindConfigMap {
			p.unresolve(c, path, gatewayv1.BackendTLSPolicyReasonInvalidKind, fmt.Sprintf("the kind '%s' of the group '%s' is not supported: only the core kind 'ConfigMap' is", ref.Kind, ref.Group))
			continue
		}
		text, problem := c.authority(types.NamespacedName{Namespace: p.Namespace, Name: string(ref.Name)})
		if problem != "" {
			p.unresolve(c, path, gatewayv1.BackendTLSPolicyReasonInvalidCACertificateRef, problem)
			continue
		}
		p.tls.CAs = append(append(p.tls.CAs, bytes.TrimSpace(text)...), '\n')
	}
	switch system := or(v.WellKnownCACertificates, ""); {
	case system != "" && system != gatewayv1.WellKnownCACertificatesSystem:
		p.refuse(c, "spec.validation.wellKnownCACertificates", gatewayv1.PolicyReasonInvalid,
			fmt.Sprintf("the certificates '%s' are not known: only 'System' are", system))
	case system == "" && len(p.tls.CAs) == 0:
		p.refuse(c, "spec.validation", gatewayv1.BackendTLSPolicyReasonNoValidCACertificate,
			"no certificate of an authority can be used")
	case v.Hostname == "":
		p.refuse(c, "spec.validation.hostname", gatewayv1.PolicyReasonInvalid, "must name the servers")
	}
}

func (p *tlsPolicy) refuse(c *translation, path string, reason gatewayv1.PolicyConditionReason, message string) {
	p.refused = first(p.refused, fault{string(reason), message})
	c.problem(kindBackendTLSPolicy, p.Namespace, p.Name, path, message)
}

func (p *tlsPolicy) unresolve(c *translation, path string, reason gatewayv1.PolicyConditionReason, message string) {
	p.unresolved = first(p.unresolved, fault{string(reason), message})
	c.problem(kindBackendTLSPolicy, p.Namespace, p.Name, path, message)
}

// policyFor returns the policy of a target; nil if there is none. A policy for the port counts more than one for the
// Service. All policies of the Service have the Gateways of the route as ancestors.
func (r *reading) policyFor(t *target, section string) *tlsPolicy {
	if len(r.policies) == 0 {
		return nil
	}
	var found *tlsPolicy
	if section != "" {
		found = r.descend(policyTarget{t.name, section})
	}
	if general := r.descend(policyTarget{t.name, ""}); found == nil {
		found = general
	}
	return found
}

// descend returns the policy that counts for a target.
func (r *reading) descend(t policyTarget) *tlsPolicy {
	all := r.policies[t]
	for _, p := range all {
		for _, g := range r.gateways {
			p.addAncestor(g)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

func (p *tlsPolicy) addAncestor(g *gateway) {
	if g == nil || len(p.ancestors) == maxAncestors {
		return
	}
	for _, a := range p.ancestors {
		if a == g {
			return
		}
	}
	p.ancestors = append(p.ancestors, g)
}
