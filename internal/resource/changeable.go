package resource

import "slices"

// changeable are the subresources of Kubernetes' own kinds that can be updated and patched, beside their status.
var changeable = map[[2]string][]string{
	{"", "namespaces"}:             {"finalize"},
	{"", "pods"}:                   {"ephemeralcontainers", "resize"},
	{"", "replicationcontrollers"}: {"scale"},
	{"apps", "deployments"}:        {"scale"},
	{"apps", "replicasets"}:        {"scale"},
	{"apps", "statefulsets"}:       {"scale"},
	{"certificates.k8s.io", "certificatesigningrequests"}: {"approval"},
}

// onlyCreated are the subresources that cannot be updated.
var onlyCreated = []string{"attach", "binding", "eviction", "exec", "log", "portforward", "proxy", "token"}

// Changeable returns the subresources of a resource that updates and patches may be about, and "" for the resource
// itself. Some may not exist. Group and resource may be "*"; named are further subresources.
func Changeable(group, plural string, named []string) []string {
	all := []string{""}
	add := func(names ...string) {
		for _, name := range names {
			if !slices.Contains(all, name) && !slices.Contains(onlyCreated, name) && name != "*" {
				all = append(all, name)
			}
		}
	}
	if plural != "*" {
		add("status")
		isKnown := false
		for of, names := range changeable {
			if of[1] == plural && (of[0] == group || group == "*") {
				add(names...)
				isKnown = true
			}
		}
		if !isKnown && IsCustom(group) {
			add("scale")
		}
	}
	add(named...)
	slices.Sort(all)
	return all
}

// IsCustom reports whether a group can be one of custom resources: Kubernetes' own have short names, or end with
// k8s.io.
func IsCustom(group string) bool {
	return slices.Contains([]byte(group), '.') && !slices.Contains(ownGroups, group)
}

// ownGroups are the groups of Kubernetes itself that have a domain.
var ownGroups = []string{
	"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
	"authorization.k8s.io",
	"certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io",
	"internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io",
	"scheduling.k8s.io",
	"storage.k8s.io", "storagemigration.k8s.io",
}
