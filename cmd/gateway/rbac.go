package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/ingress"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
	"github.com/admission-gateway/gateway/proxy"
)

// writeRoles writes the least ClusterRoles of the gateway's own account at the Kubernetes upstreams of a configuration,
// as YAML. What is to be said of them goes to the command's standard error.
func writeRoles(cmd *cobra.Command, paths []string, file string) error {
	c, err := loadForCheck(file)
	if err != nil {
		return err
	}
	all := proxy.RightsOf(c, compileFor(source.Read(paths, &source.Progress{}), c))
	w := c.Kubernetes.Watch
	if len(all) == 0 && w == nil {
		return usageError("--rbac: the configuration must have an upstream of the dialect Kubernetes, or `kubernetes.watch`")
	}
	if w != nil {
		cmd.Print(roleOfWatch(w))
		if len(w.Namespaces) > 0 {
			cmd.PrintErrln("note: with `kubernetes.watch.namespaces` the rules for resources of namespaces are enough in a Role of each of these")
		}
	}
	for i := range all {
		if i > 0 || w != nil {
			cmd.Println("---")
		}
		name := "admission-gateway"
		if len(all) > 1 {
			name += "-" + all[i].Upstream
		}
		cmd.Print(roleOf(name, &all[i]))
		cmd.PrintErr(remarksOfRole(&all[i]))
	}
	return nil
}

// roleOfWatch returns the role of a gateway that routes by the objects of a cluster, and that for its Lease, as YAML.
func roleOfWatch(w *config.ClusterWatch) string {
	var to strings.Builder
	to.WriteString("# What the gateway's own account needs to route by the objects of the cluster.\n")
	to.WriteString("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: admission-gateway-controller\nrules:\n")
	rule := func(group, verbs string, resources []string) {
		if len(resources) > 0 {
			fmt.Fprintf(&to, "  - apiGroups: [%q]\n    resources: [%s]\n    verbs: [%s]\n", group,
				strings.Join(resources, ", "), verbs)
		}
	}
	read, written, groups := map[string][]string{}, map[string][]string{}, []string{}
	for i := range ingress.Kinds {
		k := &ingress.Kinds[i]
		if !slices.Contains(groups, k.Group) {
			groups = append(groups, k.Group)
		}
		read[k.Group] = append(read[k.Group], k.Plural)
		if k.HasStatus {
			written[k.Group] = append(written[k.Group], k.Plural+"/status")
		}
	}
	for _, group := range groups {
		rule(group, "list, watch", read[group])
		rule(group, "patch", written[group])
	}
	namespace := w.Lease.Namespace
	if namespace == "" {
		namespace = "default"
	}
	to.WriteString("---\n# The Lease of the one gateway that writes statuses.\n")
	fmt.Fprintf(&to, "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: admission-gateway-controller\n  namespace: %s\nrules:\n", scalar(namespace))
	rule("coordination.k8s.io", "create", []string{"leases"})
	fmt.Fprintf(&to, "  - apiGroups: [\"coordination.k8s.io\"]\n    resources: [leases]\n    resourceNames: [%s]\n    verbs: [get, update]\n", scalar(w.Lease.Name))
	return to.String()
}

// compileFor compiles files for a gateway with a configuration; nil if they have errors.
func compileFor(files *source.Source, c *config.Configuration) *policies.Set {
	gateway := asked(c)
	gateway.Bundles, _ = bundlesForCheck(c)
	set, _ := policies.CompileFor(files, gateway)
	return set
}

// remarksOfRole says what a role does not show, a line each.
func remarksOfRole(r *proxy.Rights) string {
	var to strings.Builder
	if r.TellsMore {
		fmt.Fprintf(&to, "note: upstream '%s': what a proxy tells of users by X-Remote-Extra-* needs a right too: to `impersonate` userextras/KEY "+
			"in the group authentication.k8s.io for each KEY\n", r.Upstream)
	}
	for _, one := range r.Rights {
		if one.Resource == "*" && one.Subresource == "" {
			secrets := ""
			if one.Group == "" || one.Group == "*" {
				secrets = ", Secrets too"
			}
			fmt.Fprintf(&to, "warning: upstream '%s': the account may %s every resource of the API group '%s'%s: name the resources in the rules of what needs it: %s\n",
				r.Upstream, one.Verb, one.Group, secrets, strings.Join(one.For, "; "))
		}
	}
	return to.String()
}

// withoutAccount says what the gateway cannot do at an upstream at which it has no account.
func withoutAccount(upstream string) string {
	return "upstream '" + upstream + "': the gateway has no account there. It reads stored objects with the client's credentials, so that a client " +
		"which may write an object and not get it is refused where a policy is about the stored object. It cannot read what policies refer to, " +
		"or ask what anonymous clients may do, unless the server lets anybody"
}

// A roleRule is a rule of a role as it is written: all verbs on one resource, or on several for the same reasons.
type roleRule struct {
	access    proxy.Access // of the first resource, without the verb
	resources []string
	verbs     []string
	reason    []string
}

// rulesOf joins rights to rules. The rights are in order.
func rulesOf(rights []proxy.Right) []roleRule {
	all := verbsOf(rights)
	joined := all[:0]
	for _, rule := range all {
		at := slices.IndexFunc(joined, func(other roleRule) bool {
			return rule.access.Name == "" && rule.access.Path == "" && other.access.Name == "" &&
				other.access.Path == "" &&
				rule.access.Group == other.access.Group && slices.Equal(rule.verbs, other.verbs) &&
				slices.Equal(rule.reason, other.reason)
		})
		if at < 0 {
			joined = append(joined, rule)
			continue
		}
		joined[at].resources = append(joined[at].resources, rule.resources...)
	}
	return joined
}

// verbsOf joins the rights about one resource.
func verbsOf(rights []proxy.Right) (all []roleRule) {
	for _, one := range rights {
		access := one.Access
		access.Verb = ""
		if n := len(all); n == 0 || all[n-1].access != access {
			all = append(all, roleRule{access: access, resources: []string{scalar(access.AccessRule.Name())}})
		}
		last := &all[len(all)-1]
		last.verbs = append(last.verbs, one.Verb)
		for _, why := range one.For {
			if !slices.Contains(last.reason, why) {
				last.reason = append(last.reason, why)
			}
		}
	}
	return all
}

// roleOf returns a role as YAML, with the reason for each rule above it.
func roleOf(name string, r *proxy.Rights) string {
	var to strings.Builder
	fmt.Fprintf(&to, "# What the gateway's own account needs at the upstream '%s'.\n", r.Upstream)
	fmt.Fprintf(&to, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: %s\nrules:\n", scalar(strings.ToLower(name)))
	for _, rule := range rulesOf(r.Rights) {
		for _, why := range rule.reason {
			fmt.Fprintf(&to, "  # %s\n", strings.ReplaceAll(why, "\n", " "))
		}
		if rule.access.Path != "" {
			fmt.Fprintf(&to, "  - nonResourceURLs: [%s]\n", scalar(rule.access.Path))
		} else {
			fmt.Fprintf(&to, "  - apiGroups: [%q]\n    resources: [%s]\n", rule.access.Group,
				strings.Join(rule.resources, ", "))
		}
		if rule.access.Name != "" {
			fmt.Fprintf(&to, "    resourceNames: [%s]\n", scalar(rule.access.Name))
		}
		fmt.Fprintf(&to, "    verbs: [%s]\n", strings.Join(rule.verbs, ", "))
	}
	return to.String()
}

// plainScalar are texts that YAML reads as such without quotes.
var plainScalar = regexp.MustCompile(`^[a-z][a-z0-9./-]*$`)

func scalar(text string) string {
	if plainScalar.MatchString(text) && text != "null" && text != "true" && text != "false" && text != "yes" &&
		text != "no" && text != "on" && text != "off" {
		return text
	}
	return fmt.Sprintf("%q", text)
}

// accountless returns what the gateway cannot do at upstreams without an account, as far as the files ask for it.
func accountless(c *config.Configuration, files *source.Source) (found []finding.Finding) {
	needsAccount := func(u config.UpstreamSpec) bool { return u.Dialect == config.Kubernetes && !u.HasAccount() }
	if !slices.ContainsFunc(c.Upstreams, needsAccount) {
		return nil
	}
	set := compileFor(files, c)
	if set == nil {
		return nil
	}
	for _, r := range proxy.RightsOf(c, set) {
		if !r.HasAccount && slices.ContainsFunc(r.Rights,
			func(one proxy.Right) bool { return one.Group != "authorization.k8s.io" }) {
			found = append(found, finding.Finding{File: policies.Configuration, Field: "upstreams",
				Message: withoutAccount(r.Upstream), Severity: finding.Remark})
		}
	}
	return found
}
