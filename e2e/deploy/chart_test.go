package deploy

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// comparable returns the objects without what the two ways name in ways of their own: kustomize the configuration by its
// hash; Helm the release by labels, its configuration by an annotation, and its image by a tag and a pull policy.
func comparable(t *testing.T, text string) map[string]any {
	t.Helper()
	own := []string{"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"}
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

// What the chart sets itself is no value, and values must conform to the schema.
func TestChartRefusesValues(t *testing.T) {
	upstreams := []any{map[string]any{"name": "orders", "endpoints": []any{"http://orders:9000"}}}
	policies := map[string]any{"a.yaml": "kind: RateLimitPolicy"}
	for name, c := range map[string]struct {
		values map[string]any
		want   string
	}{
		"no policies":         {map[string]any{"configuration": map[string]any{"upstreams": upstreams}}, "policies must have a file"},
		"no upstreams":        {map[string]any{"policies": policies}, "mode Ingress needs configuration.upstreams"},
		"upstreams before":    {map[string]any{"mode": "APIServer", "policies": policies, "configuration": map[string]any{"upstreams": upstreams}}, "must be empty"},
		"unknown value":       {map[string]any{"replica": 3}, "additional properties 'replica' not allowed"},
		"unknown mode":        {map[string]any{"mode": "Proxy"}, "value must be one of"},
		"the chart's listen":  {map[string]any{"configuration": map[string]any{"listen": ":80"}}, "/configuration/listen"},
		"no file of policies": {map[string]any{"policies": map[string]any{"orders.txt": ""}}, "does not match pattern"},
		"replicas as text":    {map[string]any{"replicas": "two"}, "got string, want integer"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := template(t, c.values); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// Values that no example sets reach the objects.
func TestChartValues(t *testing.T) {
	values := example(t, "apiserver")
	maps.Copy(values, map[string]any{
		"autoscaling": map[string]any{"enabled": false}, "replicas": 5,
		"image":               map[string]any{"repository": "registry.example.com/gateway", "tag": "v9"},
		"imagePullSecrets":    []any{map[string]any{"name": "pull"}},
		"podDisruptionBudget": map[string]any{"enabled": false}, "networkPolicy": map[string]any{"monitoring": []any{}},
		"resources":      map[string]any{"limits": map[string]any{"memory": "1Gi"}},
		"service":        map[string]any{"type": "LoadBalancer", "port": 8443, "annotations": map[string]any{"a": "b"}},
		"serviceAccount": map[string]any{"annotations": map[string]any{"c": "d"}, "rules": []any{map[string]any{"apiGroups": []any{"apps"}, "resources": []any{"deployments"}, "verbs": []any{"get"}}}},
		"env":            []any{map[string]any{"name": "E", "value": "1"}},
		"volumes":        []any{map[string]any{"name": "v", "emptyDir": map[string]any{}}},
		"volumeMounts":   []any{map[string]any{"name": "v", "mountPath": "/v"}},
		"podAnnotations": map[string]any{"e": "f"}, "podLabels": map[string]any{"g": "h"}, "nodeSelector": map[string]any{"disk": "ssd"},
		"tolerations": []any{map[string]any{"key": "k", "operator": "Exists"}}, "priorityClassName": "high",
		"affinity":         map[string]any{"nodeAffinity": map[string]any{}},
		"fullnameOverride": "door", "serviceMonitor": map[string]any{"enabled": true, "labels": map[string]any{"release": "prometheus"}, "tlsConfig": map[string]any{"serverName": "door"}},
		"prometheusRule": map[string]any{"enabled": true, "labels": map[string]any{"release": "prometheus"}},
	})
	values["configuration"].(map[string]any)["admin"] = map[string]any{"tls": map[string]any{"certFile": "/v/tls.crt", "keyFile": "/v/tls.key"}}
	text, err := template(t, values)
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, text)
	for _, gone := range []string{"HorizontalPodAutoscaler door", "PodDisruptionBudget door"} {
		if all[gone] != nil {
			t.Errorf("there is a %s", gone)
		}
	}
	for _, want := range []struct {
		object string
		path   []string
		text   string
	}{
		{"Deployment door", []string{"spec", "replicas"}, "5"},
		{"Deployment door", []string{"spec", "template", "metadata", "labels", "g"}, "h"},
		{"Deployment door", []string{"spec", "template", "metadata", "annotations", "e"}, "f"},
		{"Deployment door", []string{"spec", "template", "spec", "nodeSelector"}, "disk: ssd"},
		{"Deployment door", []string{"spec", "template", "spec", "tolerations"}, "operator: Exists"},
		{"Deployment door", []string{"spec", "template", "spec", "affinity"}, "nodeAffinity: {}"},
		{"Deployment door", []string{"spec", "template", "spec", "priorityClassName"}, "high"},
		{"Deployment door", []string{"spec", "template", "spec", "imagePullSecrets"}, "name: pull"},
		{"Deployment door", []string{"spec", "template", "spec", "volumes"}, "emptyDir: {}"},
		{"Deployment door", []string{"spec", "template", "spec", "containers"}, "image: registry.example.com/gateway:v9"},
		{"Deployment door", []string{"spec", "template", "spec", "containers"}, "memory: 1Gi"},
		{"Deployment door", []string{"spec", "template", "spec", "containers"}, "mountPath: /v"},
		{"Deployment door", []string{"spec", "template", "spec", "containers"}, `value: "1"`},
		{"Deployment door", []string{"spec", "template", "spec", "containers"}, "scheme: HTTPS"},
		{"Service door", []string{"spec", "type"}, "LoadBalancer"},
		{"Service door", []string{"spec", "ports"}, "port: 8443"},
		{"Service door", []string{"metadata", "annotations"}, "a: b"},
		{"ServiceAccount door", []string{"metadata", "annotations"}, "c: d"},
		{"ClusterRole door", []string{"rules"}, "- deployments"},
		{"NetworkPolicy door", []string{"spec", "ingress"}, "- ports:\n  - port: http\n"},
		{"ServiceMonitor door", []string{"metadata", "labels"}, "release: prometheus"},
		{"ServiceMonitor door", []string{"spec", "endpoints"}, "serverName: door"},
		{"PrometheusRule door", []string{"metadata", "labels"}, "release: prometheus"},
	} {
		o := all[want.object]
		if o == nil {
			t.Errorf("there is no %s", want.object)
			continue
		}
		value, _, _ := unstructured.NestedFieldNoCopy(o.Object, want.path...)
		got, err := yaml.Marshal(value)
		if err != nil || !strings.Contains(string(got), want.text) {
			t.Errorf("%s %s: %s, want %q (%v)", want.object, strings.Join(want.path, "."), got, want.text, err)
		}
	}
}
