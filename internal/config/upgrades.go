package config

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// AllowedUpgrades are the Upgrades or, if nothing is said, their default: on a backend of the
// dialect Kubernetes exec, attach and port-forward. A proxy subresource is not among them: the
// proxy of a node leads to whatever its kubelet serves, exec in every pod included, past the
// policies about pods.
func (u *UpstreamSpec) AllowedUpgrades() []string {
	if u.Upgrades == nil && u.Dialect == Kubernetes {
		return []string{"pods/exec", "pods/attach", "pods/portforward"}
	}
	return u.Upgrades
}

// upgrades checks the subresources and paths on which clients may change to another protocol.
func (v *validator) upgrades(path string, u *UpstreamSpec) {
	entries := u.Upgrades
	for i, e := range entries {
		at := fmt.Sprintf("%s.upgrades[%d]", path, i)
		problem := upgradeProblem(e)
		if problem == "" && u.Dialect == Plain && !strings.HasPrefix(e, "/") {
			problem = fmt.Sprintf("must be a path, such as '/live', not '%s': what files describe of an upstream of the dialect Plain is served in no other protocol", e)
		}
		v.check(at, problem)
		if slices.Contains(entries[:i], e) {
			v.check(at, fmt.Sprintf("must be unique; '%s' is listed twice", e))
		}
	}
}

// upgradeProblem says what is wrong with a subresource or a path prefix.
func upgradeProblem(entry string) string {
	if strings.HasPrefix(entry, "/") {
		return pathPrefixProblem(entry)
	}
	resource, subresource, found := strings.Cut(entry, "/")
	resource, group, grouped := strings.Cut(resource, ".")
	switch {
	case !found || len(validation.IsDNS1123Label(resource)) > 0 || len(validation.IsDNS1123Label(subresource)) > 0 ||
		grouped && len(validation.IsDNS1123Subdomain(group)) > 0:
		return fmt.Sprintf("must be a subresource such as 'pods/exec' or 'machines.example.com/console', or a path such as '/live', not '%s'", entry)
	case subresource == "status" || subresource == "scale":
		return fmt.Sprintf("must not be the subresource '%s', which is part of an object", subresource)
	}
	return ""
}
