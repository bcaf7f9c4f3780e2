package ingress

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// grants are the references from other namespaces that ReferenceGrants allow, by the namespace that grants them.
type grants map[string][]*gatewayv1.ReferenceGrant

func grantsOf(all []*gatewayv1.ReferenceGrant) grants {
	g := grants{}
	for _, one := range all {
		g[one.Namespace] = append(g[one.Namespace], one)
	}
	return g
}

// A referrer is what refers to another object, by kind and namespace.
type referrer struct{ kind, namespace string }

// allow reports whether a kind of Gateway API in a namespace may refer to a core object.
func (g grants) allow(from referrer, kind, namespace, name string) bool {
	if from.namespace == namespace {
		return true
	}
	for _, one := range g[namespace] {
		if grantsFrom(one, from) && grantsTo(one, kind, name) {
			return true
		}
	}
	return false
}

func grantsFrom(g *gatewayv1.ReferenceGrant, from referrer) bool {
	for _, f := range g.Spec.From {
		if string(f.Group) == gatewayv1.GroupName && string(f.Kind) == from.kind &&
			string(f.Namespace) == from.namespace {
			return true
		}
	}
	return false
}

func grantsTo(g *gatewayv1.ReferenceGrant, kind, name string) bool {
	for _, t := range g.Spec.To {
		if t.Group == "" && string(t.Kind) == kind && (t.Name == nil || *t.Name == "" || string(*t.Name) == name) {
			return true
		}
	}
	return false
}

// namespaces are the labels of the namespaces.
type namespaces struct {
	labels map[string]labels.Set
	// isPartial says that a namespace may exist that is not among them.
	isPartial bool
}

func namespacesOf(all []*corev1.Namespace, isPartial bool) namespaces {
	n := namespaces{make(map[string]labels.Set, len(all)), isPartial}
	for _, one := range all {
		n.labels[one.Name] = one.Labels
	}
	return n
}

// selects reports whether a selector selects a namespace. One that is not valid selects nothing.
func (n *namespaces) selects(s labels.Selector, name string) bool {
	of, found := n.labels[name]
	if s == nil || !found && !n.isPartial {
		return false
	}
	if _, has := of[corev1.LabelMetadataName]; !has { // which every API server sets
		with := labels.Set{corev1.LabelMetadataName: name}
		for k, v := range of {
			with[k] = v
		}
		of = with
	}
	return s.Matches(of)
}

// A namespaceRule says from which namespaces something may come.
type namespaceRule struct {
	from     gatewayv1.FromNamespaces
	selector labels.Selector // nil selects nothing
}

func ruleOf(from *gatewayv1.FromNamespaces, selector *metav1.LabelSelector,
	otherwise gatewayv1.FromNamespaces) namespaceRule {
	r := namespaceRule{from: or(from, otherwise)}
	if r.from == gatewayv1.NamespacesFromSelector && selector != nil {
		if s, err := metav1.LabelSelectorAsSelector(selector); err == nil {
			r.selector = s
		}
	}
	return r
}

// allows reports whether something of a namespace may come to an owner in another one, or the same.
func (r *namespaceRule) allows(n *namespaces, owner, namespace string) bool {
	switch r.from {
	case gatewayv1.NamespacesFromAll:
		return true
	case gatewayv1.NamespacesFromSame:
		return owner == namespace
	case gatewayv1.NamespacesFromSelector:
		return n.selects(r.selector, namespace)
	}
	return false
}
