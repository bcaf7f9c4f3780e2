package deploy

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// A setting is a value of the chart and what it makes of an object. The value and what it needs beside it are YAML.
type setting struct {
	key, value, beside string
	object, path, want string
}

// settings has a row for each value. Without an object the deployment is meant.
var settings = []setting{
	{"mode", "Sidecar", "", "Deployment orders", "spec.template.spec.initContainers", "restartPolicy: Always"},
	{"nameOverride", "door", "", "Deployment gateway-door", "metadata.labels", "app.kubernetes.io/name: door"},
	{"fullnameOverride", "door", "", "Deployment door", "metadata.name", "door"},
	{"commonLabels", "{team: platform}", "", "Service gateway", "metadata.labels", "team: platform"},
	{"image.repository", "registry.example.com/gateway", "", "", "spec.template.spec.containers",
		"image: registry.example.com/gateway:v0.1.0"},
	{"image.tag", "v9", "", "", "spec.template.spec.containers", "image: gateway:v9"},
	{"image.digest", digest, "", "", "spec.template.spec.containers", "image: gateway:v0.1.0@" + digest},
	{"image.pullPolicy", "Always", "", "", "spec.template.spec.containers", "imagePullPolicy: Always"},
	{"imagePullSecrets", "[{name: pull}]", "", "", "spec.template.spec.imagePullSecrets", "name: pull"},
	{"existingConfigMap", "own", "{configuration: null}", "", "spec.template.spec.volumes", "name: own"},
	{"terminationGracePeriodSeconds", "90", "", "", "spec.template.spec.terminationGracePeriodSeconds", "90"},
	{"policies", "{more.yaml: 'kind: X'}", "", "ConfigMap gateway-policies", "data", "more.yaml: 'kind: X'"},
	{"policySources", "[{name: a, volume: {configMap: {name: team-a}}, path: p, owner: team-a, concerns: {groups: [a.example.com]}}, {name: b, volume: {image: {reference: 'r/p:v1', pullPolicy: Always}}}, {name: c, volume: {secret: {secretName: s}}}]",
		"", "", "spec.template.spec.volumes", "name: source-a"},
	{"policyObjects", "2000", "", "", "spec.template.spec.containers", "failureThreshold: 160"},
	{"tls.secretName", "certificate", "", "", "spec.template.spec.volumes", "secretName: certificate"},
	{"tls.minVersion", "VersionTLS13", "{tls: {secretName: s}}", "ConfigMap gateway-config", "data",
		"minVersion: VersionTLS13"},
	{"tls.clientCAConfigMap", "ca", "{tls: {secretName: s}}", "", "spec.template.spec.volumes",
		"name: ca\n  name: client-ca"},
	{"tls.clientCASecret", "ca", "{tls: {secretName: s}}", "", "spec.template.spec.volumes",
		"name: client-ca\n  secret:\n    secretName: ca"},
	{"tls.clientCertificates", "Require", "{tls: {secretName: s, clientCASecret: ca}}", "ConfigMap gateway-config",
		"data", "clientCertificates: Require"},
	{"listeners", "[{name: plain, port: 8090, servicePort: 8090, redirectToHTTPS: {code: 301}}, {name: shop, port: 8091, hosts: [shop.example.com], hsts: {maxAgeSeconds: 60}, proxyProtocol: {from: [10.0.0.0/8]}, tls: {secretName: s, clientCASecret: ca}}]",
		"", "ConfigMap gateway-config", "data", "  - listen: 0.0.0.0:8090\n    name: plain\n    redirectToHTTPS:\n      code: 301\n  - hosts:\n    - shop.example.com\n    hsts:\n      maxAgeSeconds: 60\n    listen: 0.0.0.0:8091\n    name: shop\n    proxyProtocol:\n      from:\n      - 10.0.0.0/8\n    tls:\n      certFile: /etc/gateway/listener-shop-tls/tls.crt\n      clientCAFile: /etc/gateway/listener-shop-client-ca/ca.crt\n"},
	{"admin.tls.secretName", "certificate", "", "", "spec.template.spec.containers", "scheme: HTTPS"},
	{"admin.tls.minVersion", "VersionTLS13", "{admin: {tls: {secretName: s}}}", "ConfigMap gateway-config", "data",
		"minVersion: VersionTLS13"},
	{"admin.tls.clientCAConfigMap", "ca", "{admin: {tls: {secretName: s}}}", "", "spec.template.spec.containers",
		"mountPath: /etc/gateway/admin-client-ca"},
	{"admin.tls.clientCASecret", "ca", "{admin: {tls: {secretName: s}}}", "ConfigMap gateway-config", "data",
		"clientCAFile: /etc/gateway/admin-client-ca/ca.crt"},
	{"admin.tls.clientCertificates", "Request", "{admin: {tls: {secretName: s, clientCASecret: ca}}}",
		"ConfigMap gateway-config", "data", "clientCertificates: Request"},
	{"admin.tokenSecret.name", "token", "{serviceMonitor: {enabled: true}}", "ServiceMonitor gateway", "spec.endpoints",
		"credentials:\n      key: token\n      name: token"},
	{"admin.tokenSecret.key", "secret", "{admin: {tokenSecret: {name: token}}}", "ConfigMap gateway-config", "data",
		"tokenFile: /etc/gateway/admin-token/secret"},
	{"replicas", "5", "{autoscaling: {enabled: false}}", "", "spec.replicas", "5"},
	{"autoscaling.enabled", "false", "", "", "spec.replicas", "2"},
	{"autoscaling.minReplicas", "3", "", "HorizontalPodAutoscaler gateway", "spec.minReplicas", "3"},
	{"autoscaling.maxReplicas", "7", "", "HorizontalPodAutoscaler gateway", "spec.maxReplicas", "7"},
	{"autoscaling.targetCPUUtilizationPercentage", "50", "", "HorizontalPodAutoscaler gateway", "spec.metrics",
		"averageUtilization: 50"},
	{"autoscaling.metrics", "[{type: Pods, pods: {metric: {name: rps}, target: {type: AverageValue, averageValue: '100'}}}]", "", "HorizontalPodAutoscaler gateway", "spec.metrics", "name: rps"},
	{"autoscaling.behavior", "{scaleDown: {stabilizationWindowSeconds: 600}}", "", "HorizontalPodAutoscaler gateway",
		"spec.behavior", "stabilizationWindowSeconds: 600"},
	{"podDisruptionBudget.enabled", "true", "", "PodDisruptionBudget gateway", "spec.maxUnavailable", "1"},
	{"podDisruptionBudget.minAvailable", "50%", "", "PodDisruptionBudget gateway", "spec", "minAvailable: 50%"},
	{"podDisruptionBudget.maxUnavailable", "25%", "", "PodDisruptionBudget gateway", "spec", "maxUnavailable: 25%"},
	{"podDisruptionBudget.unhealthyPodEvictionPolicy", "AlwaysAllow", "", "PodDisruptionBudget gateway", "spec",
		"unhealthyPodEvictionPolicy: AlwaysAllow"},
	{"strategy", "{rollingUpdate: {maxUnavailable: 0}}", "", "", "spec.strategy", "maxUnavailable: 0"},
	{"minReadySeconds", "5", "", "", "spec.minReadySeconds", "5"},
	{"revisionHistoryLimit", "0", "", "", "spec.revisionHistoryLimit", "0"},
	{"deploymentAnnotations", "{a: b}", "", "", "metadata.annotations", "a: b"},
	{"resources", "{limits: {memory: 1Gi, cpu: 2}}", "", "", "spec.template.spec.containers", "memory: 1Gi"},
	{"probes.startup", "{failureThreshold: 600}", "", "", "spec.template.spec.containers", "failureThreshold: 600"},
	{"probes.readiness", "{timeoutSeconds: 7}", "", "", "spec.template.spec.containers", "timeoutSeconds: 7"},
	{"probes.liveness", "{periodSeconds: 33}", "", "", "spec.template.spec.containers", "periodSeconds: 33"},
	{"lifecycle", "{preStop: {sleep: {seconds: 20}}}", "", "", "spec.template.spec.terminationGracePeriodSeconds",
		"65"},
	{"service.type", "LoadBalancer", "", "Service gateway", "spec.type", "LoadBalancer"},
	{"service.port", "8443", "", "Service gateway", "spec.ports", "port: 8443"},
	{"service.nodePort", "30080", "{service: {type: NodePort}}", "Service gateway", "spec.ports", "nodePort: 30080"},
	{"service.appProtocol", "kubernetes.io/h2c", "", "Service gateway", "spec.ports", "appProtocol: kubernetes.io/h2c"},
	{"service.clusterIP", "None", "", "Service gateway", "spec", "clusterIP: None"},
	{"service.annotations", "{a: b}", "", "Service gateway", "metadata.annotations", "a: b"},
	{"service.labels", "{a: b}", "", "Service gateway", "metadata.labels", "a: b"},
	{"service.loadBalancerClass", "example.com/internal", "{service: {type: LoadBalancer}}", "Service gateway", "spec",
		"loadBalancerClass: example.com/internal"},
	{"service.loadBalancerSourceRanges", "[10.0.0.0/8]", "{service: {type: LoadBalancer}}", "Service gateway", "spec",
		"- 10.0.0.0/8"},
	{"service.loadBalancerIP", "192.0.2.1", "{service: {type: LoadBalancer}}", "Service gateway", "spec",
		"loadBalancerIP: 192.0.2.1"},
	{"service.allocateLoadBalancerNodePorts", "false", "{service: {type: LoadBalancer}}", "Service gateway", "spec",
		"allocateLoadBalancerNodePorts: false"},
	{"service.healthCheckNodePort", "32000", "{service: {type: LoadBalancer, externalTrafficPolicy: Local}}",
		"Service gateway", "spec", "healthCheckNodePort: 32000"},
	{"service.externalIPs", "[192.0.2.1]", "", "Service gateway", "spec", "- 192.0.2.1"},
	{"service.externalTrafficPolicy", "Local", "{service: {type: LoadBalancer}}", "Service gateway", "spec",
		"externalTrafficPolicy: Local"},
	{"service.internalTrafficPolicy", "Local", "", "Service gateway", "spec", "internalTrafficPolicy: Local"},
	{"service.trafficDistribution", "PreferSameZone", "", "Service gateway", "spec",
		"trafficDistribution: PreferSameZone"},
	{"service.ipFamilyPolicy", "PreferDualStack", "", "Service gateway", "spec", "ipFamilyPolicy: PreferDualStack"},
	{"service.ipFamilies", "[IPv6]", "", "Service gateway", "spec", "- IPv6"},
	{"controller.enabled", "true", "{configuration: null}", "Service gateway", "spec.ports",
		"name: port-443\n  port: 443\n  targetPort: 443"},
	{"controller.controllerName", "example.com/gateway", "{controller: {enabled: true}}", "ConfigMap gateway-config",
		"data", "controllerName: example.com/gateway"},
	{"controller.gatewayClass", "public", "{controller: {enabled: true}}", "GatewayClass public", "spec.controllerName",
		"admission-gateway.io/gateway"},
	{"controller.ingressClass", "public", "{controller: {enabled: true}}", "IngressClass public", "spec.controller",
		"admission-gateway.io/gateway"},
	{"controller.namespaces", "[shop]", "{controller: {enabled: true}}", "Role gateway-controller",
		"metadata.namespace", "shop"},
	{"controller.ports", "[8000]", "{controller: {enabled: true}}", "", "spec.template.spec.containers",
		"- containerPort: 8000"},
	{"ingress.enabled", "true", "", "Ingress gateway", "spec.rules", "pathType: Prefix"},
	{"ingress.className", "nginx", "{ingress: {enabled: true}}", "Ingress gateway", "spec", "ingressClassName: nginx"},
	{"ingress.annotations", "{a: b}", "{ingress: {enabled: true}}", "Ingress gateway", "metadata.annotations", "a: b"},
	{"ingress.labels", "{a: b}", "{ingress: {enabled: true}}", "Ingress gateway", "metadata.labels", "a: b"},
	{"ingress.hosts", "[{host: a.example.com, paths: [{path: /v1, pathType: Exact}]}]", "{ingress: {enabled: true}}",
		"Ingress gateway", "spec.rules", "host: a.example.com"},
	{"ingress.tls", "[{secretName: s, hosts: [a.example.com]}]", "{ingress: {enabled: true}}", "Ingress gateway",
		"spec.tls", "secretName: s"},
	{"httpRoute.enabled", "true", "{httpRoute: {parentRefs: [{name: public}]}}", "HTTPRoute gateway", "spec.rules",
		"port: 80"},
	{"httpRoute.annotations", "{a: b}", "{httpRoute: {enabled: true, parentRefs: [{name: public}]}}",
		"HTTPRoute gateway", "metadata.annotations", "a: b"},
	{"httpRoute.labels", "{a: b}", "{httpRoute: {enabled: true, parentRefs: [{name: public}]}}", "HTTPRoute gateway",
		"metadata.labels", "a: b"},
	{"httpRoute.parentRefs", "[{name: public, namespace: gateways}]", "{httpRoute: {enabled: true}}",
		"HTTPRoute gateway", "spec.parentRefs", "namespace: gateways"},
	{"httpRoute.hostnames", "[a.example.com]", "{httpRoute: {enabled: true, parentRefs: [{name: public}]}}",
		"HTTPRoute gateway", "spec.hostnames", "a.example.com"},
	{"httpRoute.matches", "[{path: {type: PathPrefix, value: /v1}}]",
		"{httpRoute: {enabled: true, parentRefs: [{name: public}]}}", "HTTPRoute gateway", "spec.rules", "value: /v1"},
	{"httpRoute.filters", "[{type: RequestHeaderModifier, requestHeaderModifier: {remove: [x-a]}}]",
		"{httpRoute: {enabled: true, parentRefs: [{name: public}]}}", "HTTPRoute gateway", "spec.rules", "x-a"},
	{"serviceAccount.name", "own", "", "", "spec.template.spec.serviceAccountName", "own"},
	{"serviceAccount.annotations", "{a: b}", "{mode: APIServer, configuration: null}", "ServiceAccount gateway",
		"metadata.annotations", "a: b"},
	{"serviceAccount.automountServiceAccountToken", "true", "{serviceAccount: {name: own}}", "",
		"spec.template.spec.automountServiceAccountToken", "true"},
	{"serviceAccount.rules", "[{apiGroups: [apps], resources: [deployments], verbs: [get]}]",
		"{mode: APIServer, configuration: null}", "ClusterRole gateway", "rules", "- deployments"},
	{"rbac.create", "true", "{mode: APIServer, configuration: null}", "ClusterRoleBinding gateway", "roleRef.name",
		"gateway"},
	{"networkPolicy.enabled", "true", "", "NetworkPolicy gateway", "spec.policyTypes", "Ingress"},
	{"networkPolicy.clients", "[{podSelector: {matchLabels: {app: shop}}}]", "", "NetworkPolicy gateway",
		"spec.ingress", "app: shop"},
	{"networkPolicy.monitoring", "[{ipBlock: {cidr: 10.0.0.0/8}}]", "", "NetworkPolicy gateway", "spec.ingress",
		"cidr: 10.0.0.0/8"},
	{"serviceMonitor.enabled", "true", "", "ServiceMonitor gateway", "spec.endpoints", "targetPort: admin"},
	{"serviceMonitor.namespace", "monitoring", "{serviceMonitor: {enabled: true}}", "ServiceMonitor gateway",
		"spec.namespaceSelector.matchNames", "gateway-system"},
	{"serviceMonitor.interval", "7s", "{serviceMonitor: {enabled: true}}", "ServiceMonitor gateway", "spec.endpoints",
		"interval: 7s"},
	{"serviceMonitor.scrapeTimeout", "5s", "{serviceMonitor: {enabled: true}}", "ServiceMonitor gateway",
		"spec.endpoints", "scrapeTimeout: 5s"},
	{"serviceMonitor.labels", "{release: prometheus}", "{serviceMonitor: {enabled: true}}", "ServiceMonitor gateway",
		"metadata.labels", "release: prometheus"},
	{"serviceMonitor.tlsConfig", "{serverName: door}",
		"{serviceMonitor: {enabled: true}, admin: {tls: {secretName: s}}}", "ServiceMonitor gateway", "spec.endpoints",
		"scheme: https\n  targetPort: admin\n  tlsConfig:\n    serverName: door"},
	{"serviceMonitor.relabelings", "[{targetLabel: a, replacement: b}]", "{serviceMonitor: {enabled: true}}",
		"ServiceMonitor gateway", "spec.endpoints", "targetLabel: a"},
	{"serviceMonitor.metricRelabelings", "[{action: labeldrop, regex: route}]", "{serviceMonitor: {enabled: true}}",
		"ServiceMonitor gateway", "spec.endpoints", "regex: route"},
	{"prometheusRule.enabled", "true", "", "PrometheusRule gateway", "spec.groups", "alert: GatewayAbsent"},
	{"prometheusRule.namespace", "monitoring", "{prometheusRule: {enabled: true}}", "PrometheusRule gateway",
		"metadata.namespace", "monitoring"},
	{"prometheusRule.labels", "{release: prometheus}", "{prometheusRule: {enabled: true}}", "PrometheusRule gateway",
		"metadata.labels", "release: prometheus"},
	{"dashboard.enabled", "true", "", "ConfigMap gateway-dashboard", "data", "admission-gateway"},
	{"dashboard.namespace", "monitoring", "{dashboard: {enabled: true}}", "ConfigMap gateway-dashboard",
		"metadata.namespace", "monitoring"},
	{"dashboard.annotations", "{grafana_folder: gateways}", "{dashboard: {enabled: true}}",
		"ConfigMap gateway-dashboard", "metadata.annotations", "grafana_folder: gateways"},
	{"dashboard.labels", "{a: b}", "{dashboard: {enabled: true}}", "ConfigMap gateway-dashboard", "metadata.labels",
		"a: b"},
	{"helmTest.enabled", "true", "{admin: {tls: {secretName: s}, tokenSecret: {name: token}}}", "Pod gateway-test",
		"spec.containers", "--token-file=/etc/gateway/admin-token/token"},
	{"helmTest.resources", "{limits: {memory: 32Mi}}", "", "Pod gateway-test", "spec.containers", "memory: 32Mi"},
	{"podSecurityContext", "{fsGroup: 65532, runAsUser: null}", "", "", "spec.template.spec.securityContext",
		"fsGroup: 65532\nrunAsGroup: 65532\nrunAsNonRoot: true\nseccomp"},
	{"securityContext", "{privileged: false}", "", "", "spec.template.spec.containers", "privileged: false"},
	{"podAnnotations", "{a: b}", "", "", "spec.template.metadata.annotations", "a: b"},
	{"podLabels", "{a: b}", "", "", "spec.template.metadata.labels", "a: b"},
	{"extraArgs", "[--log-level=Debug]", "", "", "spec.template.spec.containers", "- --log-level=Debug"},
	{"env", "[{name: E, value: '1'}]", "", "", "spec.template.spec.containers", "name: E"},
	{"envFrom", "[{secretRef: {name: s}}]", "", "", "spec.template.spec.containers", "secretRef:"},
	{"volumes", "[{name: v, emptyDir: {}}]", "", "", "spec.template.spec.volumes", "emptyDir: {}"},
	{"volumeMounts", "[{name: v, mountPath: /v}]", "{volumes: [{name: v, emptyDir: {}}]}", "",
		"spec.template.spec.containers", "mountPath: /v"},
	{"initContainers", "[{name: i, image: i}]", "", "", "spec.template.spec.initContainers", "image: i"},
	{"extraContainers", "[{name: x, image: x}]", "", "", "spec.template.spec.containers", "image: x"},
	{"extraObjects", "[{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Release.Name }}-extra'}}]", "", "ConfigMap gateway-extra", "metadata.name", "gateway-extra"},
	{"nodeSelector", "{disk: ssd}", "", "", "spec.template.spec.nodeSelector", "disk: ssd"},
	{"tolerations", "[{key: k, operator: Exists}]", "", "", "spec.template.spec.tolerations", "operator: Exists"},
	{"affinity", "{nodeAffinity: {}}", "", "", "spec.template.spec.affinity", "nodeAffinity: {}"},
	{"topologySpreadConstraints", "[{maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {a: b}}}]", "", "", "spec.template.spec.topologySpreadConstraints", "maxSkew: 2"},
	{"priorityClassName", "high", "", "", "spec.template.spec.priorityClassName", "high"},
	{"runtimeClassName", "gvisor", "", "", "spec.template.spec.runtimeClassName", "gvisor"},
	{"schedulerName", "own", "", "", "spec.template.spec.schedulerName", "own"},
	{"hostAliases", "[{ip: 192.0.2.1, hostnames: [orders]}]", "", "", "spec.template.spec.hostAliases",
		"ip: 192.0.2.1"},
	{"dnsPolicy", "None", "", "", "spec.template.spec.dnsPolicy", "None"},
	{"dnsConfig", "{nameservers: [192.0.2.1]}", "", "", "spec.template.spec.dnsConfig", "- 192.0.2.1"},
}

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// values returns values that render, with those of the setting.
func (s *setting) values(t *testing.T) map[string]any {
	t.Helper()
	base := map[string]any{
		"configuration": map[string]any{
			"upstreams": []any{map[string]any{"name": "orders", "endpoints": []any{"http://orders:9000"}}}},
		"policies": map[string]any{"policies.yaml": "kind: RateLimitPolicy"},
	}
	parsed := func(text string) (v any) {
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatalf("%s: %v", s.key, err)
		}
		return v
	}
	value := parsed(s.value)
	for _, key := range slices.Backward(strings.Split(s.key, ".")) {
		value = map[string]any{key: value}
	}
	all := chartutil.CoalesceTables(value.(map[string]any), base)
	if beside, ok := parsed(s.beside).(map[string]any); ok {
		for key, v := range beside {
			if v == nil {
				delete(all, key)
				delete(beside, key)
			}
		}
		all = chartutil.CoalesceTables(all, beside)
	}
	return all
}

// allValues returns what is rendered of as many values as go together. The definition of HTTPRoutes is another
// project's.
func allValues(t *testing.T) string {
	t.Helper()
	all := map[string]any{}
	for _, s := range settings {
		isAlone := s.key == "mode" || s.key == "existingConfigMap" || strings.HasSuffix(s.key, "verride") ||
			strings.HasPrefix(s.key, "httpRoute.") || strings.HasPrefix(s.key, "controller.") ||
			s.key == "podDisruptionBudget.maxUnavailable" || s.key == "replicas" || s.key == "autoscaling.enabled" ||
			strings.HasSuffix(s.key, "clientCASecret") ||
			strings.Contains(s.beside, "mode:") || s.key == "service.ipFamilies" || s.key == "service.externalIPs" ||
			s.key == "service.clusterIP" || strings.HasSuffix(s.key, ".namespace") ||
			s.key == "service.ipFamilyPolicy" || s.key == "terminationGracePeriodSeconds"
		if !isAlone {
			all = chartutil.CoalesceTables(s.values(t), all)
		}
	}
	all["service"].(map[string]any)["type"] = "LoadBalancer"
	for _, tls := range []any{all["tls"], all["admin"].(map[string]any)["tls"]} {
		delete(tls.(map[string]any), "clientCASecret")
	}
	text, err := template(t, all)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Values go together.
func TestChartEverything(t *testing.T) {
	all := objects(t, allValues(t))
	if len(all) < 12 {
		t.Errorf("there are only %d objects", len(all))
	}
	for _, o := range all {
		checkObject(t, o)
	}
}

// Each value reaches an object, and what is rendered then is what Kubernetes takes.
func TestChartValues(t *testing.T) {
	for _, s := range settings {
		t.Run(s.key, func(t *testing.T) {
			text, err := template(t, s.values(t))
			if err != nil {
				t.Fatal(err)
			}
			all := objects(t, text)
			name := s.object
			if name == "" {
				name = "Deployment gateway"
			}
			o := all[name]
			if o == nil {
				t.Fatalf("there is no %s", name)
			}
			value, _, err := unstructured.NestedFieldNoCopy(o.Object, strings.Split(s.path, ".")...)
			if err != nil {
				t.Fatal(err)
			}
			got, err := yaml.Marshal(value)
			if err != nil || !strings.Contains(string(got), s.want) {
				t.Errorf("%s %s is\n%s\nwant %q (%v)", name, s.path, got, s.want, err)
			}
			for _, o := range all {
				checkObject(t, o)
			}
		})
	}
}

// What is switched off is not there.
func TestChartWithout(t *testing.T) {
	for key, gone := range map[string]string{
		"autoscaling.enabled":         "HorizontalPodAutoscaler gateway",
		"podDisruptionBudget.enabled": "PodDisruptionBudget gateway",
		"networkPolicy.enabled":       "NetworkPolicy gateway", "helmTest.enabled": "Pod gateway-test",
		"rbac.create": "ClusterRole gateway",
	} {
		beside := ""
		if key == "rbac.create" {
			beside = "{mode: APIServer, configuration: null}"
		}
		text, err := template(t, (&setting{key: key, value: "false", beside: beside}).values(t))
		if err != nil || objects(t, text)[gone] != nil {
			t.Errorf("%s: there is a %s (%v)", key, gone, err)
		}
	}
}

// Sources of policies are paths of the configuration, whether or not there are files in the values.
func TestChartPolicySources(t *testing.T) {
	s := &setting{
		key: "policySources", beside: "{policies: null}",
		value: "[{name: team-a, volume: {configMap: {name: a}}, path: p/q, owner: team-a, concerns: {groups: [a.example.com]}}, {name: b, volume: {image: {reference: r}}}]",
	}
	text, err := template(t, s.values(t))
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, text)
	if all["ConfigMap gateway-policies"] != nil {
		t.Error("there is a ConfigMap without policies")
	}
	files, _, _ := unstructured.NestedStringMap(all["ConfigMap gateway-config"].Object, "data")
	var configuration struct{ Policies []any }
	if err := yaml.Unmarshal([]byte(files["gateway.yaml"]), &configuration); err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(configuration.Policies)
	if want := `[{"concerns":{"groups":["a.example.com"]},"owner":"team-a","path":"/etc/gateway/sources/team-a/p/q"},"/etc/gateway/sources/b"]`; string(got) != want {
		t.Errorf("the paths are %s, want %s", got, want)
	}
}

// The values that docs/install.md names for a purpose render.
func TestChartValuesOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## By Helm\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := strings.Split(section, "```")
	named := regexp.MustCompile("`(\\w+: [^`]+)`").FindAllStringSubmatch(blocks[len(blocks)-1], -1)
	shown := []string{strings.TrimPrefix(blocks[len(blocks)-2], "yaml\n")} // the sources of policies
	for _, m := range named {
		shown = append(shown, m[1])
	}
	if len(shown) < 7 || !strings.Contains(shown[0], "policySources:") {
		t.Fatalf("the page names %q", shown)
	}
	for _, text := range shown {
		beside := text
		if strings.HasPrefix(text, "existingConfigMap:") {
			beside += "\nconfiguration: null"
		}
		rendered, err := template(t, (&setting{key: "mode", value: "Ingress", beside: beside}).values(t))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, o := range objects(t, rendered) {
			checkObject(t, o)
		}
	}
}

// valuesSchema is the schema of the values, as far as the tests read it.
type valuesSchema struct {
	Type       any
	Enum       []any
	Properties map[string]*valuesSchema
}

// keys returns the values below a schema by their paths, and of which type each is.
func (s *valuesSchema) keys(path string, all map[string]*valuesSchema) {
	for name, p := range s.Properties {
		switch key := strings.TrimPrefix(path+"."+name, "."); {
		case key == "configuration" || key == "global":
		case p.Properties != nil:
			p.keys(key, all)
		default:
			all[key] = p
		}
	}
}

func readValuesSchema(t *testing.T) map[string]*valuesSchema {
	t.Helper()
	text, err := os.ReadFile(helm + "/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s valuesSchema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	all := map[string]*valuesSchema{}
	s.keys("", all)
	return all
}

// values.yaml, its schema and the rows above have the same values.
func TestChartValuesAreAllThere(t *testing.T) {
	values, err := chartutil.ReadValuesFile(filepath.Join(helm, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var tested []string
	for _, s := range settings {
		tested = append(tested, s.key)
	}
	known := slices.Sorted(maps.Keys(readValuesSchema(t)))
	slices.Sort(tested)
	if !slices.Equal(tested, known) {
		t.Errorf("rows are for %q\nthe schema has %q", tested, known)
	}
	for _, key := range known {
		if _, has, err := unstructured.NestedFieldNoCopy(values, strings.Split(key, ".")...); !has || err != nil {
			t.Errorf("values.yaml does not have %s (%v)", key, err)
		}
	}
}

// What the chart's README names for values of other charts are values of this one, and it names all that a user of
// those charts can have in mind.
func TestChartValuesBesideOthers(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(helm, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Coming from other charts\n")
	table, _, _ = strings.Cut(table, "\n## ")
	known := readValuesSchema(t)
	left := maps.Clone(known)
	isKnown := func(key string) bool {
		for k := range known {
			if k == key || strings.HasPrefix(k, key+".") {
				return true
			}
		}
		return key == "configuration"
	}
	rows, named := 0, regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 3 || !strings.HasPrefix(line, "| `") {
			continue
		}
		rows++
		for _, m := range named.FindAllStringSubmatch(cells[2], -1) {
			if !isKnown(m[1]) {
				t.Errorf("the chart has no %s: %s", m[1], line)
			}
			delete(left, m[1])
		}
	}
	if rows < 30 {
		t.Errorf("the table has %d rows", rows)
	}
	// What no other chart has.
	own := regexp.MustCompile(`^(mode|policies|policySources|policyObjects|controller\.|admin\.|ingress\.|httpRoute\.|podDisruptionBudget\.enabled)`)
	for key := range left {
		if !own.MatchString(key) {
			t.Errorf("the table leaves out %s", key)
		}
	}
}

// A value of a wrong type is refused by its path, and so is a field that Kubernetes does not have.
func TestChartValuesHaveTypes(t *testing.T) {
	for key, s := range readValuesSchema(t) {
		wrong := "[[]]"
		if s.Type == "array" {
			wrong = "{}"
		}
		if _, err := template(t, (&setting{key: key, value: wrong}).values(t)); err == nil ||
			!strings.Contains(err.Error(), "'/"+strings.ReplaceAll(key, ".", "/")+"'") {
			t.Errorf("%s: %v", key, err)
		}
	}
	for key, value := range map[string]string{
		"tolerations": "[{efect: NoSchedule}]", "volumes": "[{name: v, configmap: {}}]",
		"affinity": "{nodeafinity: {}}", "lifecycle": "{prestop: {}}",
		"probes.startup": "{failurethreshold: 1}", "resources": "{limit: {}}",
		"autoscaling.behavior": "{scaledown: {}}", "extraContainers": "[{name: x, imagee: y}]",
		"configuration": "{limits: {bodyBites: 1}}", "configuration.admin": "{token: a}",
	} {
		if _, err := template(t, (&setting{key: key, value: value}).values(t)); err == nil ||
			!strings.Contains(err.Error(), "/"+strings.ReplaceAll(key, ".", "/")) ||
			!strings.Contains(err.Error(), "not allowed") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// gatewayAPI is the file of a definition of Gateway API, which may not be there.
func gatewayAPI(plural string) string {
	return filepath.Join(os.Getenv("SUITES_DIR"), "data/gateway-api/config/crd/standard/gateway.networking.k8s.io_"+
		plural+".yaml")
}

// checkObject checks an object as the API server does with strict validation: no field is unknown, and each has its
// type.
func checkObject(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	text, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range []string{
		"testdata/monitoring.coreos.com_servicemonitors.yaml", "testdata/monitoring.coreos.com_prometheusrules.yaml",
		gatewayAPI("httproutes"), gatewayAPI("gatewayclasses"),
	} {
		kind := strings.ToLower(o.GetKind())
		if strings.HasSuffix(definition, "_"+kind+"s.yaml") || strings.HasSuffix(definition, "_"+kind+"es.yaml") {
			checkCustomObject(t, definition, o)
			return
		}
	}
	codecs := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict)
	if _, _, err := codecs.UniversalDeserializer().Decode(text, nil, nil); err != nil {
		t.Errorf("%s %s: %v\n%s", o.GetKind(), o.GetName(), err, text)
	}
}

func checkCustomObject(t *testing.T, definition string, o *unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile(definition)
	if os.IsNotExist(err) {
		t.Logf("%s is not checked, since SUITES_DIR has no %s", o.GetKind(), filepath.Base(definition))
		return
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err == nil {
		err = yaml.Unmarshal(text, &crd)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range crd.Spec.Versions {
		if v.Name != o.GroupVersionKind().Version {
			continue
		}
		var internal apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema,
			&internal, nil); err != nil {
			t.Fatal(err)
		}
		structural, err := schema.NewStructural(&internal)
		if err != nil {
			t.Fatal(err)
		}
		validator, _, err := validation.NewSchemaValidator(&internal)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range validation.ValidateCustomResource(nil, o.Object, validator) {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), e)
		}
		left := o.DeepCopy()
		if unknown := pruning.PruneWithOptions(left.Object, structural, true,
			schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}); len(unknown) > 0 {
			t.Errorf("%s %s: unknown fields %q", o.GetKind(), o.GetName(), unknown)
		}
		return
	}
	t.Errorf("%s has no version %s", definition, o.GroupVersionKind().Version)
}
