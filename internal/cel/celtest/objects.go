package celtest

// BenchObject has 1.4 KB.
const BenchObject = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"payments","namespace":"team-a","labels":{"app":"payments","team":"a","tier":"backend"},"annotations":{"example.com/owner":"payments@example.com"}},` +
	`"spec":{"replicas":3,"revisionHistoryLimit":10,"selector":{"matchLabels":{"app":"payments"}},"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%","maxUnavailable":0}},` +
	`"template":{"metadata":{"labels":{"app":"payments","team":"a"}},"spec":{"serviceAccountName":"payments","containers":[` +
	`{"name":"server","image":"registry.example.com/payments/server:1.4.2","ports":[{"name":"http","containerPort":8080},{"name":"metrics","containerPort":9090}],"resources":{"requests":{"cpu":"250m","memory":"256Mi"},"limits":{"cpu":"500m","memory":"512Mi"}},"securityContext":{"runAsNonRoot":true,"readOnlyRootFilesystem":true},"env":[{"name":"LOG_LEVEL","value":"info"},{"name":"DB_HOST","value":"db.team-a.svc"}]},` +
	`{"name":"proxy","image":"registry.example.com/mesh/proxy:2.1.0","ports":[{"name":"admin","containerPort":15000}],"resources":{"requests":{"cpu":"50m","memory":"64Mi"},"limits":{"cpu":"100m","memory":"128Mi"}},"securityContext":{"runAsNonRoot":true}}]}}}}`

const PlainObject = `{
  "apiVersion": "apps/v1", "kind": "Deployment",
  "metadata": {"name": "web", "namespace": "team-a", "labels": {"app": "web", "example.com/tier": "front"}, "annotations": {}},
  "spec": {
    "replicas": 3, "big": 9007199254740993, "most": 9223372036854775807, "least": -9223372036854775808,
    "ratio": 0.5, "whole": 1.0, "exp": 1e3, "minus": -0, "nothing": null, "paused": false, "empty": "", "none": [], "blank": {},
    "text": "a\u00e9\ud83d\ude00\n\"x\"", "nested": [[1, 2], [3], []], "mixed": [1, "a", true, null, 1.5, {"a": 1}],
    "containers": [
      {"name": "web", "image": "registry.example.com/web:1.2", "ports": [{"containerPort": 8080, "protocol": "TCP"}], "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}}},
      {"name": "log", "image": "log:latest", "ports": []}
    ],
    "with-dash": 1, "a.b": 2, "__proto__": 3, "if": 4, "namespace": "ns"
  }
}`
