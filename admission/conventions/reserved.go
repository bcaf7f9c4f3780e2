package conventions

import (
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
)

// topLevelFields refuses what stands beside spec and status (STAT-5).
func (c *checker) topLevelFields() {
	if !c.on(TopLevelFields) || c.Bare {
		return
	}
	if _, found := c.Root.Get("spec"); !found || !c.status.Valid() && len(c.Status) == 0 {
		return
	}
	for m := c.Root.First(); m.Valid(); m = m.Next() {
		switch m.Key() {
		case "apiVersion", "kind", "metadata", "spec", "status":
		default:
			c.found(TopLevelFields, m, c.forbidden(m, "may not be set: an object with `spec` and `status` has no other fields at its top but `metadata`"))
		}
	}
}

// reservedKeys looks for prefixes of the Kubernetes project in the keys of labels and annotations (META-2).
func (c *checker) reservedKeys() {
	if !c.on(ReservedKeys) || c.Bare {
		return
	}
	for _, name := range []string{"labels", "annotations"} {
		keys := at(c.Root, []string{"metadata", name})
		if keys.Kind() != document.Object {
			continue
		}
		for m := keys.First(); m.Valid(); m = m.Next() {
			prefix, _, found := strings.Cut(m.Key(), "/")
			if !found || !isReserved(prefix) {
				continue
			}
			c.reservedKey(m, prefix)
		}
	}
}

// reservedKey records a key with a reserved prefix, unless all policies allow it.
func (c *checker) reservedKey(m document.Node, prefix string) {
	action := Off
	var tried []*DryRun
	for _, r := range c.keyRules {
		switch {
		case slices.Contains(r.allowed, prefix):
		case r.trial < 0:
			action = max(action, r.action)
		default:
			action = max(action, min(r.action, Warn))
			if r.action == Deny {
				tried = append(tried, &c.dryRuns[r.trial])
			}
		}
	}
	c.record(action, m, c.forbidden(m, "may not be set: prefixes under 'kubernetes.io' and 'k8s.io' are reserved for the Kubernetes project"), tried)
}

// isReserved reports whether a domain is one of the Kubernetes project.
func isReserved(domain string) bool {
	return domain == "kubernetes.io" || domain == "k8s.io" || strings.HasSuffix(domain, ".kubernetes.io") ||
		strings.HasSuffix(domain, ".k8s.io")
}

// reservedNames looks at namespaces and definitions of resources that are created (RES-9).
func (c *checker) reservedNames() {
	info := c.attributes.Info
	if !c.on(ReservedNames) || c.attributes.Operation != admission.Create || info.Subresource != "" {
		return
	}
	switch {
	case info.IsNamespaces():
		for _, key := range []string{"name", "generateName"} {
			if v := at(c.Root, []string{"metadata", key}); v.Kind() == document.String &&
				strings.HasPrefix(v.Str(), "kube-") {
				c.found(ReservedNames, v, c.invalid(v, "may not begin with 'kube-', which is reserved for the namespaces of Kubernetes itself"))
			}
		}
	case info.Group == "apiextensions.k8s.io" && info.Resource == "customresourcedefinitions":
		c.reservedGroup(at(c.Root, []string{"spec", "group"}))
	}
}

// approval is the annotation by which the Kubernetes project allows a definition the use of one of its groups.
const approval = "api-approved.kubernetes.io"

func (c *checker) reservedGroup(group document.Node) {
	if group.Kind() != document.String || !isReserved(group.Str()) && strings.Contains(group.Str(), ".") {
		return
	}
	if approved := at(c.Root, []string{"metadata", "annotations", approval}); approved.Kind() == document.String &&
		approved.Str() != "" {
		return
	}
	c.found(ReservedNames, group,
		c.invalid(group, "must be a domain of its owner, such as 'widget.example.com': single words, "+
			"and what is under 'k8s.io' and 'kubernetes.io', are reserved for the Kubernetes project"))
}
