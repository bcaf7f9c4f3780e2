// Package natives has the kinds of Kubernetes itself.
package natives

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Native is a kind that every Kubernetes API server serves.
type Native struct {
	Plural     string
	Namespaced bool
}

// Kinds are the kinds of Kubernetes itself, so that no server has to be asked about them. Their
// versions come and go; what they are called and where they live does not.
var Kinds = map[schema.GroupKind]Native{
	{Group: "", Kind: "ConfigMap"}:             {"configmaps", true},
	{Group: "", Kind: "Endpoints"}:             {"endpoints", true},
	{Group: "", Kind: "Event"}:                 {"events", true},
	{Group: "", Kind: "LimitRange"}:            {"limitranges", true},
	{Group: "", Kind: "Namespace"}:             {"namespaces", false},
	{Group: "", Kind: "Node"}:                  {"nodes", false},
	{Group: "", Kind: "PersistentVolume"}:      {"persistentvolumes", false},
	{Group: "", Kind: "PersistentVolumeClaim"}: {"persistentvolumeclaims", true},
	{Group: "", Kind: "Pod"}:                   {"pods", true},
	{Group: "", Kind: "PodTemplate"}:           {"podtemplates", true},
	{Group: "", Kind: "ReplicationController"}: {"replicationcontrollers", true},
	{Group: "", Kind: "ResourceQuota"}:         {"resourcequotas", true},
	{Group: "", Kind: "Secret"}:                {"secrets", true},
	{Group: "", Kind: "Service"}:               {"services", true},
	{Group: "", Kind: "ServiceAccount"}:        {"serviceaccounts", true},

	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {"customresourcedefinitions", false},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             {"apiservices", false},

	{Group: "apps", Kind: "ControllerRevision"}: {"controllerrevisions", true},
	{Group: "apps", Kind: "DaemonSet"}:          {"daemonsets", true},
	{Group: "apps", Kind: "Deployment"}:         {"deployments", true},
	{Group: "apps", Kind: "ReplicaSet"}:         {"replicasets", true},
	{Group: "apps", Kind: "StatefulSet"}:        {"statefulsets", true},

	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: {"horizontalpodautoscalers", true},

	{Group: "batch", Kind: "CronJob"}: {"cronjobs", true},
	{Group: "batch", Kind: "Job"}:     {"jobs", true},

	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: {"certificatesigningrequests", false},
	{Group: "coordination.k8s.io", Kind: "Lease"}:                     {"leases", true},
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:                {"endpointslices", true},
	{Group: "events.k8s.io", Kind: "Event"}:                           {"events", true},

	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:                 {"flowschemas", false},
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"}: {"prioritylevelconfigurations", false},

	{Group: "networking.k8s.io", Kind: "Ingress"}:       {"ingresses", true},
	{Group: "networking.k8s.io", Kind: "IngressClass"}:  {"ingressclasses", false},
	{Group: "networking.k8s.io", Kind: "IPAddress"}:     {"ipaddresses", false},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: {"networkpolicies", true},
	{Group: "networking.k8s.io", Kind: "ServiceCIDR"}:   {"servicecidrs", false},

	{Group: "node.k8s.io", Kind: "RuntimeClass"}:   {"runtimeclasses", false},
	{Group: "policy", Kind: "PodDisruptionBudget"}: {"poddisruptionbudgets", true},

	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        {"clusterroles", false},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: {"clusterrolebindings", false},
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               {"roles", true},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        {"rolebindings", true},

	{Group: "resource.k8s.io", Kind: "DeviceClass"}:           {"deviceclasses", false},
	{Group: "resource.k8s.io", Kind: "ResourceClaim"}:         {"resourceclaims", true},
	{Group: "resource.k8s.io", Kind: "ResourceClaimTemplate"}: {"resourceclaimtemplates", true},
	{Group: "resource.k8s.io", Kind: "ResourceSlice"}:         {"resourceslices", false},

	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}: {"priorityclasses", false},

	{Group: "storage.k8s.io", Kind: "CSIDriver"}:             {"csidrivers", false},
	{Group: "storage.k8s.io", Kind: "CSINode"}:               {"csinodes", false},
	{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"}:    {"csistoragecapacities", true},
	{Group: "storage.k8s.io", Kind: "StorageClass"}:          {"storageclasses", false},
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:      {"volumeattachments", false},
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}: {"volumeattributesclasses", false},
}

// CoreResources are the resources of Kubernetes' core group: of its kinds, and two more that are not stored.
func CoreResources() []string {
	all := []string{"bindings", "componentstatuses"}
	for kind, n := range Kinds {
		if kind.Group == "" {
			all = append(all, n.Plural)
		}
	}
	slices.Sort(all)
	return all
}

// UndottedGroups are Kubernetes' own groups whose names have no dot.
func UndottedGroups() []string {
	groups := map[string]bool{"extensions": true} // of older versions
	for kind := range Kinds {
		if kind.Group != "" && !strings.Contains(kind.Group, ".") {
			groups[kind.Group] = true
		}
	}
	return slices.Sorted(maps.Keys(groups))
}
