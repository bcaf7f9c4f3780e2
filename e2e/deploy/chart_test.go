package deploy

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"k8s.io/apimachinery/pkg/util/diff"
	"sigs.k8s.io/yaml"
)

// The chart's examples render the objects of the kustomize folders.
func TestChartRendersTheFolders(t *testing.T) {
	for name := range kustomized {
		t.Run(name, func(t *testing.T) {
			both := rendered(t, name)
			want, got := comparable(t, both["kustomize"]), comparable(t, both["helm"])
			if a, b := slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)); !slices.Equal(a, b) {
				t.Fatalf("kustomize renders %q\nhelm renders      %q", a, b)
			}
			for key := range want {
				if !reflect.DeepEqual(want[key], got[key]) {
					t.Errorf("%s: kustomize (-), helm (+)\n%s", key, diff.Diff(want[key], got[key]))
				}
			}
		})
	}
}

// hash matches the name of a configuration, to which kustomize adds a hash.
var hash = regexp.MustCompile(`^(gateway-config)-[a-z0-9]{10}$`)

// comparable returns the objects without what the two ways name in ways of their own: kustomize the configuration by
// its hash; Helm the release by labels, its configuration by an annotation, and its image by a tag and a pull policy.
func comparable(t *testing.T, text string) map[string]any {
	t.Helper()
	own := []string{"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/version",
		"app.kubernetes.io/managed-by", "helm.sh/chart"}
	var clean func(key string, v any) any
	clean = func(key string, v any) any {
		switch v := v.(type) {
		case map[string]any:
			for k, value := range v {
				switch {
				case slices.Contains(own, k), k == "checksum/config", k == "imagePullPolicy", k == "namespace":
					delete(v, k)
					continue
				case k == "gateway.yaml" || k == "policies.yaml":
					var parsed any
					if err := yaml.Unmarshal([]byte(value.(string)), &parsed); err != nil {
						t.Error(err)
					}
					v[k] = parsed
					continue
				}
				v[k] = clean(k, value)
				if m, ok := v[k].(map[string]any); ok && len(m) == 0 && (k == "labels" || k == "annotations") {
					delete(v, k)
				}
			}
			return v
		case []any:
			for i := range v {
				v[i] = clean("", v[i])
			}
			if key == "volumes" || key == "volumeMounts" { // whose order means nothing
				slices.SortFunc(v, func(a, b any) int {
					return strings.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
				})
			}
			return v
		case string:
			if key == "image" {
				return strings.Split(v, ":")[0]
			}
			return hash.ReplaceAllString(v, "$1")
		}
		return v
	}
	all := map[string]any{}
	for key, o := range objects(t, text) {
		kind, name, _ := strings.Cut(key, " ")
		all[kind+" "+hash.ReplaceAllString(name, "$1")] = clean("", o.Object)
	}
	return all
}

// Helm's own linter finds nothing to warn of.
func TestChartLint(t *testing.T) {
	for name := range kustomized {
		for _, m := range lint.All(helm, example(t, name), "default", true).Messages {
			if m.Severity >= support.WarningSev {
				t.Errorf("%s: %s", name, m)
			}
		}
	}
}

// What the chart sets itself is no value, and what cannot be right together is refused by the name of a value.
func TestChartRefusesValues(t *testing.T) {
	for name, c := range map[string]struct{ key, value, beside, want string }{
		"no policies": {"mode", "Ingress", "{policies: null}", "policies: must have a file"},
		"no upstreams": {"mode", "Ingress", "{configuration: null}",
			"configuration.upstreams: required value in mode Ingress"},
		"upstreams before": {"mode", "APIServer", "", "configuration.upstreams: must be empty"},
		"unknown value":    {"replica", "3", "", "additional properties 'replica' not allowed"},
		"unknown mode":     {"mode", "Proxy", "", "at '/mode': value must be one of"},
		"the chart's listen": {"configuration.listen", "':80'", "",
			"at '/configuration': additional properties 'listen' not allowed"},
		"the chart's paths": {"configuration.policies.paths", "[a]", "",
			"at '/configuration/policies': additional properties 'paths' not allowed"},
		"no file of policies": {"policies", "{orders.txt: ''}", "", "does not match pattern"},
		"replicas as text":    {"replicas", "two", "", "at '/replicas': got string, want integer"},
		"two configurations":  {"existingConfigMap", "own", "", "configuration: must be empty beside existingConfigMap"},
		"killed while draining": {"terminationGracePeriodSeconds", "60",
			"{configuration: {drainSeconds: 60, shutdownDeadlineSeconds: 120}}",
			"terminationGracePeriodSeconds: 60 is too short"},
		"killed in the hook": {"terminationGracePeriodSeconds", "45",
			"{lifecycle: {preStop: {sleep: {seconds: 5}}}}", "terminationGracePeriodSeconds: 45 is too short"},
		"mTLS without TLS": {"tls.clientCertificates", "Require", "", "tls.secretName: required value"},
		"mTLS without authorities": {"tls.clientCertificates", "Require", "{tls: {secretName: s}}",
			"tls.clientCertificates: Require needs tls.clientCAConfigMap"},
		"two places of authorities": {"tls.clientCASecret", "a", "{tls: {secretName: s, clientCAConfigMap: b}}",
			"tls.clientCASecret: must not be set beside"},
		"a port twice": {"listeners", "[{name: a, port: 8081}]", "", "listeners[0].port: 8081 is another listener's"},
		"a port of the Service": {"listeners", "[{name: a, port: 8090, servicePort: 80}]", "",
			"listeners: a has the servicePort 80, which is service.port"},
		"mTLS of a listener": {"listeners", "[{name: a, port: 8090, tls: {secretName: s, clientCertificates: Require}}]", "", "listeners[0].tls.clientCertificates: Require needs listeners[0].tls.clientCAConfigMap"},
		"probes without a key": {"admin.tls.clientCertificates", "Require", "",
			"admin.tls.clientCertificates: must not be Require"},
		"no version of TLS": {"tls.minVersion", "TLS1.1", "", "at '/tls/minVersion'"},
		"no digest":         {"image.digest", "latest", "", "at '/image/digest'"},
		"two volumes": {"policySources",
			"[{name: a, volume: {configMap: {name: a}, secret: {secretName: b}}}]", "", "at '/policySources/0/volume'"},
		"a source outside": {"policySources", "[{name: a, volume: {emptyDir: {}}, path: ../b}]", "",
			"at '/policySources/0/path'"},
		"concerns of nobody": {"policySources", "[{name: a, volume: {emptyDir: {}}, concerns: {groups: [b]}}]",
			"", "policySources: a has concerns and no owner"},
		"no node can be drained": {"podDisruptionBudget.minAvailable", "2", "",
			"podDisruptionBudget.minAvailable: 2 of 2 replicas"},
		"fewer than the least": {"autoscaling.maxReplicas", "1", "", "autoscaling.maxReplicas: 1 is less"},
		"no load balancer": {"service.loadBalancerSourceRanges", "[10.0.0.0/8]", "",
			"service.loadBalancerSourceRanges: a Service of the type ClusterIP has none"},
		"no ports of a balancer": {"service.allocateLoadBalancerNodePorts", "false", "", "service.allocateLoadBalancerNodePorts: a Service of the type ClusterIP has no load balancer"},
		"no Gateway":             {"httpRoute.enabled", "true", "", "httpRoute.parentRefs: required value"},
		"TLS of Prometheus alone": {"serviceMonitor.tlsConfig", "{serverName: a}",
			"{serviceMonitor: {enabled: true}}", "serviceMonitor.tlsConfig: must be empty"},
		"seconds as text": {"configuration.drainSeconds", "ten", "", "at '/configuration/drainSeconds'"},
	} {
		t.Run(name, func(t *testing.T) {
			s := setting{key: c.key, value: c.value, beside: c.beside}
			if _, err := template(t, s.values(t)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// Images are volumes since Kubernetes 1.31.
func TestChartImagesNeedKubernetes(t *testing.T) {
	s := setting{key: "policySources", value: "[{name: a, volume: {image: {reference: r}}}]"}
	old := chartutil.DefaultCapabilities.Copy()
	old.KubeVersion = chartutil.KubeVersion{Version: "v1.30.4", Major: "1", Minor: "30"}
	if _, err := templateFor(t, s.values(t), old); err == nil || !strings.Contains(err.Error(), "policySources: a is an image, which Kubernetes mounts since 1.31; this is v1.30.4") {
		t.Error(err)
	}
}
