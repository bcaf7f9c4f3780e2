package main

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// values are the values of the chart, in the order of values.yaml, which says what each is. The tags say which words a
// text may be, the pattern that it matches, and between which numbers a number lies.
type values struct {
	Mode             string                        `json:"mode" enum:"Ingress|APIServer|Sidecar"`
	NameOverride     string                        `json:"nameOverride" pattern:"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$" maxLength:"50"`
	FullnameOverride string                        `json:"fullnameOverride" pattern:"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$" maxLength:"50"`
	CommonLabels     map[string]string             `json:"commonLabels"`
	Image            image                         `json:"image"`
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets"`

	ExistingConfigMap             string         `json:"existingConfigMap"`
	TerminationGracePeriodSeconds int32          `json:"terminationGracePeriodSeconds" minimum:"0"`
	Policies                      policyFiles    `json:"policies"`
	PolicySources                 []policySource `json:"policySources"`
	PolicyObjects                 int32          `json:"policyObjects" minimum:"0"`
	TLS                           listenerTLS    `json:"tls"`
	Listeners                     []listener     `json:"listeners"`
	Admin                         admin          `json:"admin"`

	Replicas            int32                       `json:"replicas" minimum:"1"`
	Autoscaling         autoscaling                 `json:"autoscaling"`
	PodDisruptionBudget podDisruptionBudget         `json:"podDisruptionBudget"`
	Strategy            appsv1.DeploymentStrategy   `json:"strategy"`
	MinReadySeconds     int32                       `json:"minReadySeconds" minimum:"0"`
	RevisionHistory     int32                       `json:"revisionHistoryLimit" minimum:"0"`
	DeploymentNotes     map[string]string           `json:"deploymentAnnotations"`
	Resources           corev1.ResourceRequirements `json:"resources"`
	Probes              probes                      `json:"probes"`
	Lifecycle           corev1.Lifecycle            `json:"lifecycle"`

	Service        service        `json:"service"`
	Controller     controller     `json:"controller"`
	Ingress        ingress        `json:"ingress"`
	HTTPRoute      httpRoute      `json:"httpRoute"`
	ServiceAccount serviceAccount `json:"serviceAccount"`
	RBAC           rbac           `json:"rbac"`
	NetworkPolicy  networkPolicy  `json:"networkPolicy"`

	ServiceMonitor serviceMonitor `json:"serviceMonitor"`
	PrometheusRule prometheusRule `json:"prometheusRule"`
	Dashboard      dashboard      `json:"dashboard"`
	HelmTest       helmTest       `json:"helmTest"`

	PodSecurityContext corev1.PodSecurityContext `json:"podSecurityContext"`
	SecurityContext    corev1.SecurityContext    `json:"securityContext"`
	PodAnnotations     map[string]string         `json:"podAnnotations"`
	PodLabels          map[string]string         `json:"podLabels"`

	ExtraArgs       []string               `json:"extraArgs"`
	Env             []corev1.EnvVar        `json:"env"`
	EnvFrom         []corev1.EnvFromSource `json:"envFrom"`
	Volumes         []corev1.Volume        `json:"volumes"`
	VolumeMounts    []corev1.VolumeMount   `json:"volumeMounts"`
	InitContainers  []corev1.Container     `json:"initContainers"`
	ExtraContainers []corev1.Container     `json:"extraContainers"`
	ExtraObjects    []anyObject            `json:"extraObjects"`

	NodeSelector      map[string]string                 `json:"nodeSelector"`
	Tolerations       []corev1.Toleration               `json:"tolerations"`
	Affinity          corev1.Affinity                   `json:"affinity"`
	SpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints"`
	PriorityClassName string                            `json:"priorityClassName"`
	RuntimeClassName  string                            `json:"runtimeClassName"`
	SchedulerName     string                            `json:"schedulerName"`
	HostAliases       []corev1.HostAlias                `json:"hostAliases"`
	DNSPolicy         string                            `json:"dnsPolicy" enum:"|ClusterFirst|ClusterFirstWithHostNet|Default|None"`
	DNSConfig         corev1.PodDNSConfig               `json:"dnsConfig"`
}

type image struct {
	Repository string `json:"repository" minLength:"1"`
	Tag        string `json:"tag"`
	Digest     string `json:"digest" pattern:"^(sha256:[0-9a-f]{64})?$"`
	PullPolicy string `json:"pullPolicy" enum:"Always|IfNotPresent|Never"`
}

// policyFiles are policy files by their names.
type policyFiles map[string]string

type policySource struct {
	Name     string              `json:"name" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" maxLength:"40" required:""`
	Volume   corev1.VolumeSource `json:"volume" required:"" exactlyOne:""`
	Path     string              `json:"path" pattern:"^([^/.][^/]*(/[^/.][^/]*)*)?$"`
	Owner    string              `json:"owner"`
	Concerns concerns            `json:"concerns"`
}

type concerns struct {
	Routes []string `json:"routes"`
	Hosts  []string `json:"hosts"`
	Groups []string `json:"groups"`
}

type controller struct {
	Enabled        bool     `json:"enabled"`
	ControllerName string   `json:"controllerName" pattern:"^[a-z0-9.-]+/.+$"`
	GatewayClass   string   `json:"gatewayClass"`
	IngressClass   string   `json:"ingressClass"`
	Namespaces     []string `json:"namespaces"`
	Ports          []int32  `json:"ports"`
}

type listenerTLS struct {
	SecretName         string `json:"secretName"`
	MinVersion         string `json:"minVersion" enum:"|VersionTLS12|VersionTLS13"`
	ClientCAConfigMap  string `json:"clientCAConfigMap"`
	ClientCASecret     string `json:"clientCASecret"`
	ClientCertificates string `json:"clientCertificates" enum:"|Ignore|Request|Require"`
}

type listener struct {
	Name            string          `json:"name" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" maxLength:"40" required:""`
	Port            int32           `json:"port" minimum:"1" maximum:"65535" required:""`
	ServicePort     int32           `json:"servicePort" minimum:"0" maximum:"65535"`
	Hosts           []string        `json:"hosts"`
	TLS             listenerTLS     `json:"tls"`
	RedirectToHTTPS redirectToHTTPS `json:"redirectToHTTPS"`
	HSTS            hsts            `json:"hsts"`
	ProxyProtocol   proxyProtocol   `json:"proxyProtocol"`
}

type redirectToHTTPS struct {
	Code int32 `json:"code" minimum:"301" maximum:"308"`
	Port int32 `json:"port" minimum:"1" maximum:"65535"`
}

type hsts struct {
	MaxAgeSeconds     int32 `json:"maxAgeSeconds" minimum:"0"`
	IncludeSubDomains bool  `json:"includeSubDomains"`
	Preload           bool  `json:"preload"`
}

type proxyProtocol struct {
	From []string `json:"from"`
}

type admin struct {
	TLS         listenerTLS `json:"tls"`
	TokenSecret keyOfSecret `json:"tokenSecret"`
}

type keyOfSecret struct {
	Name string `json:"name"`
	Key  string `json:"key" minLength:"1"`
}

type autoscaling struct {
	Enabled     bool                                          `json:"enabled"`
	MinReplicas int32                                         `json:"minReplicas" minimum:"1"`
	MaxReplicas int32                                         `json:"maxReplicas" minimum:"1"`
	Processors  int32                                         `json:"targetCPUUtilizationPercentage" minimum:"1"`
	Metrics     []autoscalingv2.MetricSpec                    `json:"metrics"`
	Behavior    autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior"`
}

type podDisruptionBudget struct {
	Enabled        bool                                    `json:"enabled"`
	MinAvailable   intstr.IntOrString                      `json:"minAvailable"`
	MaxUnavailable intstr.IntOrString                      `json:"maxUnavailable"`
	Unhealthy      policyv1.UnhealthyPodEvictionPolicyType `json:"unhealthyPodEvictionPolicy" enum:"|IfHealthyBudget|AlwaysAllow"`
}

type probes struct {
	Startup   corev1.Probe `json:"startup"`
	Readiness corev1.Probe `json:"readiness"`
	Liveness  corev1.Probe `json:"liveness"`
}

type service struct {
	Type                     string            `json:"type" enum:"ClusterIP|NodePort|LoadBalancer"`
	Port                     int32             `json:"port" minimum:"0" maximum:"65535"`
	NodePort                 int32             `json:"nodePort" minimum:"0" maximum:"65535"`
	AppProtocol              string            `json:"appProtocol"`
	ClusterIP                string            `json:"clusterIP"`
	Annotations              map[string]string `json:"annotations"`
	Labels                   map[string]string `json:"labels"`
	LoadBalancerClass        string            `json:"loadBalancerClass"`
	LoadBalancerSourceRanges []string          `json:"loadBalancerSourceRanges"`
	LoadBalancerIP           string            `json:"loadBalancerIP"`
	AllocateNodePorts        bool              `json:"allocateLoadBalancerNodePorts"`
	HealthCheckNodePort      int32             `json:"healthCheckNodePort" minimum:"0" maximum:"65535"`
	ExternalIPs              []string          `json:"externalIPs"`
	ExternalTrafficPolicy    string            `json:"externalTrafficPolicy" enum:"|Cluster|Local"`
	InternalTrafficPolicy    string            `json:"internalTrafficPolicy" enum:"|Cluster|Local"`
	TrafficDistribution      string            `json:"trafficDistribution"`
	IPFamilyPolicy           string            `json:"ipFamilyPolicy" enum:"|SingleStack|PreferDualStack|RequireDualStack"`
	IPFamilies               []string          `json:"ipFamilies"`
}

type ingress struct {
	Enabled     bool                      `json:"enabled"`
	ClassName   string                    `json:"className"`
	Annotations map[string]string         `json:"annotations"`
	Labels      map[string]string         `json:"labels"`
	Hosts       []ingressHost             `json:"hosts"`
	TLS         []networkingv1.IngressTLS `json:"tls"`
}

type ingressHost struct {
	Host  string        `json:"host"`
	Paths []ingressPath `json:"paths"`
}

type ingressPath struct {
	Path     string `json:"path" pattern:"^/" required:""`
	PathType string `json:"pathType" enum:"Prefix|Exact|ImplementationSpecific"`
}

type httpRoute struct {
	Enabled     bool              `json:"enabled"`
	Annotations map[string]string `json:"annotations"`
	Labels      map[string]string `json:"labels"`
	ParentRefs  []anyObject       `json:"parentRefs"`
	Hostnames   []string          `json:"hostnames"`
	Matches     []anyObject       `json:"matches"`
	Filters     []anyObject       `json:"filters"`
}

type serviceAccount struct {
	Name        string              `json:"name"`
	Annotations map[string]string   `json:"annotations"`
	Automount   bool                `json:"automountServiceAccountToken"`
	Rules       []rbacv1.PolicyRule `json:"rules"`
}

type rbac struct {
	Create bool `json:"create"`
}

type networkPolicy struct {
	Enabled    bool                             `json:"enabled"`
	Clients    []networkingv1.NetworkPolicyPeer `json:"clients"`
	Monitoring []networkingv1.NetworkPolicyPeer `json:"monitoring"`
}

type serviceMonitor struct {
	Enabled           bool              `json:"enabled"`
	Namespace         string            `json:"namespace"`
	Interval          string            `json:"interval" pattern:"^[0-9]+(ms|s|m|h)$"`
	ScrapeTimeout     string            `json:"scrapeTimeout" pattern:"^([0-9]+(ms|s|m|h))?$"`
	Labels            map[string]string `json:"labels"`
	TLSConfig         anyObject         `json:"tlsConfig"`
	Relabelings       []anyObject       `json:"relabelings"`
	MetricRelabelings []anyObject       `json:"metricRelabelings"`
}

type prometheusRule struct {
	Enabled   bool              `json:"enabled"`
	Namespace string            `json:"namespace"`
	Labels    map[string]string `json:"labels"`
}

type dashboard struct {
	Enabled     bool              `json:"enabled"`
	Namespace   string            `json:"namespace"`
	Annotations map[string]string `json:"annotations"`
	Labels      map[string]string `json:"labels"`
}

type helmTest struct {
	Enabled   bool                        `json:"enabled"`
	Resources corev1.ResourceRequirements `json:"resources"`
}

// anyObject is an object whose form others define.
type anyObject map[string]any
