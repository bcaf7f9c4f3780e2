package vap

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// practiceObjects are objects that policies can refer to.
var practiceObjects = []string{
	"{apiVersion: v1, kind: Namespace, metadata: {name: team-a, labels: {tier: prod, 'pod-security.kubernetes.io/enforce': restricted}, annotations: {quota: '3'}}, spec: {finalizers: [kubernetes]}}",
	"{apiVersion: v1, kind: Namespace, metadata: {name: team-b, labels: {tier: test}}}",
	"{apiVersion: v1, kind: ConfigMap, metadata: {name: limits, namespace: team-a, labels: {for: limits}}, data: {maxReplicas: '3', registries: 'registry.example.com/,mirror.example.com/'}}",
	"{apiVersion: v1, kind: ConfigMap, metadata: {name: limits2, namespace: team-a, labels: {for: limits}}, data: {maxReplicas: '100', registries: docker.io/}}",
	"{apiVersion: v1, kind: ConfigMap, metadata: {name: limits, namespace: team-b}, data: {maxReplicas: '1'}}",
	"{apiVersion: rules.example.com/v1, kind: ReplicaLimit, metadata: {name: small, labels: {env: test}}, maxReplicas: 3, exempt: [web]}",
	"{apiVersion: rules.example.com/v1, kind: ReplicaLimit, metadata: {name: large, labels: {env: prod}}, maxReplicas: 50}",
	// What the library's policies and their tests refer to.
	"{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: shop}}}",
	"{apiVersion: v1, kind: Namespace, metadata: {name: default}}",
	"{apiVersion: v1, kind: ConfigMap, metadata: {name: registries, namespace: platform}, data: {ours: registry.example.com/, partner: quay.io/partner/}}",
}

const (
	goodPod = `{apiVersion: v1, kind: Pod, metadata: {name: good, namespace: team-a, labels: {app: web, team: payments, 'app.kubernetes.io/name': web}, annotations: {'example.com/owner': 'jane@example.com', expires: '2030-01-01T00:00:00Z'}},
		spec: {serviceAccountName: web, automountServiceAccountToken: false, priorityClassName: high, terminationGracePeriodSeconds: 30, nodeSelector: {disk: ssd},
			securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}, sysctls: []},
			volumes: [{name: tmp, emptyDir: {}}, {name: config, configMap: {name: web}}],
			containers: [{name: web, image: 'registry.example.com/web@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', imagePullPolicy: IfNotPresent, command: [web, --port=8080],
				ports: [{name: http, containerPort: 8080, protocol: TCP}], env: [{name: LEVEL, value: info}, {name: SECRET, valueFrom: {secretKeyRef: {name: s, key: k}}}],
				resources: {requests: {cpu: 250m, memory: 256Mi}, limits: {cpu: '1', memory: 512Mi}}, livenessProbe: {httpGet: {port: 8080}}, readinessProbe: {httpGet: {port: 8080}},
				securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, runAsNonRoot: true, capabilities: {drop: [ALL]}}}]}}`
	badPod = `{apiVersion: v1, kind: Pod, metadata: {generateName: bad-, namespace: team-b, labels: {app: Bad_Label!}, annotations: {expires: tomorrow}},
		spec: {hostNetwork: true, hostPID: true, hostIPC: false, terminationGracePeriodSeconds: 7200, nodeName: node-1, tolerations: [{operator: Exists}],
			volumes: [{name: host, hostPath: {path: /var/run/docker.sock}}, {name: host2, hostPath: {path: /}}],
			initContainers: [{name: init, image: busybox, securityContext: {privileged: true}}],
			containers: [{name: a, image: 'docker.io/nginx:latest', imagePullPolicy: Always, securityContext: {privileged: true, capabilities: {add: [NET_ADMIN, SYS_TIME]}, runAsUser: 0}, ports: [{containerPort: 80, hostPort: 80}],
				resources: {limits: {memory: 64Gi, cpu: 32}, requests: {memory: 1Ti}}, env: [{name: PASSWORD, value: hunter2}]}, {name: b, image: 'evil.example.org/b:1', ports: [], stdin: true, tty: true},
				{name: c, image: nginx, securityContext: {}, resources: {}}]}}`
	deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: team-a, labels: {app: web, env: prod}, generation: 4},
		spec: {replicas: 5, revisionHistoryLimit: 10, selector: {matchLabels: {app: web}}, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 0}},
			template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: 'registry.example.com/web:1.2.3', resources: {requests: {cpu: 100m}}}]}}}}`
	deploymentOld = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: team-a, labels: {app: web, env: test}, generation: 3},
		spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: 'registry.example.com/web:1.2.2'}]}}}}`
	service  = `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: team-a}, spec: {type: LoadBalancer, externalIPs: ['192.0.2.7', '10.0.0.4'], loadBalancerSourceRanges: ['10.0.0.0/8', '192.0.2.0/24'], ports: [{name: http, port: 80, targetPort: http}, {port: 443, targetPort: 8443}]}}`
	service6 = `{apiVersion: v1, kind: Service, metadata: {name: web6, namespace: team-b, annotations: {'service.beta.kubernetes.io/internal': 'true'}}, spec: {type: ClusterIP, clusterIP: '2001:db8::1', ports: [{port: 8443}]}}`
	ingress  = `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, namespace: team-a, annotations: {'example.com/backend': 'https://user@backend.example.com:8443/path?x=1&x=2#f'}}, spec: {tls: [{hosts: [web.example.com], secretName: tls}], rules: [{host: web.example.com, http: {paths: [{path: /, pathType: Prefix}]}}, {host: '*.example.org'}]}}`
	release  = `{apiVersion: release.example.com/v1, kind: Release, metadata: {name: r1}, spec: {version: v1.12.3-rc.1+build5, minimum: 1.2.0, notBefore: '2026-01-01T00:00:00Z', notAfter: '2026-06-01T12:30:00+02:00', window: 1h30m, ratio: 0.75, weight: 3, big: 9007199254740993, tags: [a, b, a], matrix: [[1, 2], [3]], owner: null, empty: '', path: /a/b/c.txt, count: 4294967296, labels: {a.b/c: d, x__y: z, namespace: n}}}`
	releaseB = `{apiVersion: release.example.com/v1, kind: Release, metadata: {name: r2, labels: {app: r}}, spec: {version: not-a-version, minimum: '1.2', notBefore: yesterday, window: 90, ratio: 1, weight: 2.5, big: -1, tags: [], matrix: [], owner: jane, path: '', count: 0, labels: {}}}`
)

var execKind = schema.GroupVersionKind{Version: "v1", Kind: "PodExecOptions"}

// practiceRequests are requests of every operation, on resources with and without namespaces and with subresources.
var practiceRequests = []practiceRequest{
	{operation: "CREATE", path: "/api/v1/namespaces/team-a/pods", object: goodPod},
	{operation: "CREATE", path: "/api/v1/namespaces/team-b/pods", object: badPod, dryRun: true},
	{operation: "CREATE", path: "/api/v1/namespaces/team-b/pods", object: goodPod, user: "admin"},
	{operation: "UPDATE", path: "/api/v1/namespaces/team-a/pods/good", object: goodPod, old: badPod},
	{operation: "UPDATE", path: "/api/v1/namespaces/team-a/pods/good/status", object: goodPod, old: goodPod},
	{operation: "UPDATE", path: "/api/v1/namespaces/team-a/pods/good/ephemeralcontainers", object: badPod, old: goodPod,
		user: "admin"},
	{operation: "DELETE", path: "/api/v1/namespaces/team-a/pods/good", old: goodPod, options: "{apiVersion: meta.k8s.io/v1, kind: DeleteOptions, gracePeriodSeconds: 0, propagationPolicy: Background}"},
	{operation: "DELETE", path: "/api/v1/namespaces/team-b/pods/bad-1", old: badPod, dryRun: true},
	{operation: "CONNECT", path: "/api/v1/namespaces/team-a/pods/good/exec", object: "{apiVersion: v1, kind: PodExecOptions, stdin: true, tty: true, container: web, command: [sh, -c, id]}", kind: execKind},
	{operation: "CREATE", path: "/apis/apps/v1/namespaces/team-a/deployments", object: deployment},
	{operation: "UPDATE", path: "/apis/apps/v1/namespaces/team-a/deployments/web", object: deployment,
		old: deploymentOld},
	{operation: "UPDATE", path: "/apis/apps/v1/namespaces/team-a/deployments/web", object: deploymentOld,
		old: deployment, user: "admin"},
	{operation: "UPDATE", path: "/apis/apps/v1/namespaces/team-b/deployments/web/scale", object: "{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: web, namespace: team-b}, spec: {replicas: 7}}", old: "{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: web, namespace: team-b}, spec: {replicas: 1}}"},
	{operation: "DELETE", path: "/apis/apps/v1/namespaces/team-a/deployments/web", old: deployment},
	{operation: "CREATE", path: "/api/v1/namespaces/team-a/services", object: service},
	{operation: "UPDATE", path: "/api/v1/namespaces/team-b/services/web6", object: service6, old: service},
	{operation: "CREATE", path: "/apis/networking.k8s.io/v1/namespaces/team-a/ingresses", object: ingress},
	{operation: "CREATE", path: "/apis/release.example.com/v1/releases", object: release},
	{operation: "CREATE", path: "/apis/release.example.com/v1/releases", object: releaseB},
	{operation: "UPDATE", path: "/apis/release.example.com/v1/releases/r1", object: releaseB, old: release},
	{operation: "CREATE", path: "/api/v1/namespaces", object: "{apiVersion: v1, kind: Namespace, metadata: {name: team-c, labels: {tier: dev}}}"},
	{operation: "UPDATE", path: "/api/v1/namespaces/team-a", object: "{apiVersion: v1, kind: Namespace, metadata: {name: team-a, labels: {tier: dev}}}", old: "{apiVersion: v1, kind: Namespace, metadata: {name: team-a, labels: {tier: prod}}}"},
	{operation: "CREATE", path: "/api/v1/namespaces/team-a/configmaps", object: "{apiVersion: v1, kind: ConfigMap, metadata: {name: huge, namespace: team-a}, data: {lines: '" + strings.Repeat("line,", 300) + "', n: '12'}}"},
	{operation: "CREATE", path: "/apis/release.example.com/v1/releases", object: "{apiVersion: release.example.com/v1, kind: Release, metadata: {name: long}, spec: {tags: [" + strings.Repeat("x, ", 999) + "y], weight: -1}}"},
}

const containers = "(object.spec.containers + object.spec.?initContainers.orValue([]))"

// only narrows a policy to resources of a group.
func only(group, resources, operations string) string {
	return "matchConstraints: {resourceRules: [{apiGroups: ['" + group + "'], apiVersions: ['*'], operations: [" +
		operations + "], resources: [" + resources + "]}]}\n"
}

var podWrites = only("", "pods", "CREATE, UPDATE")

// practices are policies as Kubernetes' documentation, Pod Security, the libraries of Gatekeeper,
// Kyverno and Kubescape and the guides of cloud providers have them, and policies that test only
// their details.
var practices = []practice{
	// What the documentation of Kubernetes shows.
	{name: "replicas", policy: only("apps", "deployments", "CREATE, UPDATE") +
		`validations: [{expression: object.spec.replicas <= 4, message: too many}]`},
	{name: "variables of one name: the last one counts, for those between too", policy: only("apps", "deployments", "CREATE, UPDATE") + `
variables:
- {name: a, expression: "1"}
- {name: between, expression: variables.a + 1}
- {name: a, expression: object.spec.replicas}
- {name: after, expression: variables.a > 3 || variables.between > 4}
validations: [{expression: "!variables.after", messageExpression: "string(variables.a) + ' and ' + string(variables.between)"}, {expression: variables.a == 1}]`},
	{name: "variables of one name and of other types", policy: only("apps", "deployments", "CREATE, UPDATE") + `
variables:
- {name: a, expression: "1"}
- {name: sum, expression: variables.a + 1}
- {name: a, expression: "'x'"}
- {name: size, expression: size(variables.a)}
- {name: a, expression: "['x', 'y']"}
validations: [{expression: "variables.a == [] || variables.size == 3"}, {expression: variables.sum == 2}, {expression: "variables.a.all(x, x == 'x')"}]`},
	{name: "variables of one name, the last one failing", policy: only("apps", "deployments", "CREATE, UPDATE") + `
variables:
- {name: a, expression: "1"}
- {name: a, expression: object.spec.none}
validations: [{expression: variables.a == 1}]`},
	{name: "variables of one name with parameters", policy: only("apps", "deployments", "CREATE, UPDATE") + `
paramKind: {apiVersion: rules.example.com/v1, kind: ReplicaLimit}
variables:
- {name: limit, expression: "10"}
- {name: exceeded, expression: object.spec.replicas > variables.limit}
- {name: limit, expression: params.maxReplicas}
validations: [{expression: "!variables.exceeded", messageExpression: "'more than ' + string(variables.limit)"}]`,
		bindings: []string{"{paramRef: {name: small, parameterNotFoundAction: Deny}, validationActions: [Deny]}"}},
	{name: "replicas by parameter", policy: only("apps", "deployments", "CREATE, UPDATE") + `
paramKind: {apiVersion: rules.example.com/v1, kind: ReplicaLimit}
validations: [{expression: "object.spec.replicas <= params.maxReplicas", reason: Invalid, message: too many}]`,
		bindings: []string{"{paramRef: {name: small, parameterNotFoundAction: Deny}, validationActions: [Deny]}", "{paramRef: {name: large, parameterNotFoundAction: Deny}, validationActions: [Deny]}"}},
	{name: "parameters by selector", policy: only("apps", "deployments", "CREATE, UPDATE") + `
paramKind: {apiVersion: rules.example.com/v1, kind: ReplicaLimit}
validations: [{expression: "object.spec.replicas <= params.maxReplicas || object.metadata.name in params.?exempt.orValue([])", messageExpression: "'more than ' + string(params.maxReplicas)"}]`,
		bindings: []string{"{paramRef: {selector: {matchLabels: {env: prod}}, parameterNotFoundAction: Deny}, validationActions: [Deny]}", "{paramRef: {selector: {}, parameterNotFoundAction: Allow}, validationActions: [Warn, Audit]}"}},
	{name: "no parameter is denied", policy: only("apps", "deployments", "'*'") + `
paramKind: {apiVersion: rules.example.com/v1, kind: ReplicaLimit}
validations: [{expression: "true"}]`, bindings: []string{"{paramRef: {name: missing, parameterNotFoundAction: Deny}, validationActions: [Deny]}"}},
	{name: "no parameter is ignored", policy: only("apps", "deployments", "'*'") + `
failurePolicy: Ignore
paramKind: {apiVersion: rules.example.com/v1, kind: ReplicaLimit}
validations: [{expression: "false"}]`, bindings: []string{"{paramRef: {name: missing, parameterNotFoundAction: Deny}, validationActions: [Deny]}"}},
	{name: "no parameter is allowed", policy: only("apps", "deployments", "'*'") + `
paramKind: {apiVersion: rules.example.com/v1, kind: ReplicaLimit}
validations: [{expression: "false"}]`, bindings: []string{"{paramRef: {selector: {matchLabels: {env: none}}, parameterNotFoundAction: Allow}, validationActions: [Deny]}"}},
	{name: "parameters of the namespace", policy: only("apps", "deployments,deployments/scale", "CREATE, UPDATE") + `
paramKind: {apiVersion: v1, kind: ConfigMap}
validations: [{expression: "object.spec.replicas <= int(params.data.maxReplicas)", messageExpression: "'at most ' + params.data.maxReplicas"}]`,
		bindings: []string{"{paramRef: {name: limits, parameterNotFoundAction: Deny}, validationActions: [Deny]}", "{paramRef: {selector: {matchLabels: {for: limits}}, parameterNotFoundAction: Deny}, validationActions: [Deny]}"}},
	{name: "parameters of another namespace", policy: `
paramKind: {apiVersion: v1, kind: ConfigMap}
validations: [{expression: "!has(object.spec.replicas) || object.spec.replicas <= int(params.data.maxReplicas)", message: too many}]`,
		bindings: []string{"{paramRef: {name: limits, namespace: team-b, parameterNotFoundAction: Deny}, validationActions: [Deny]}"}},
	{name: "namespaced parameters, cluster-scoped object", policy: only("release.example.com", "releases", "'*'") + `
paramKind: {apiVersion: v1, kind: ConfigMap}
validations: [{expression: "true"}]`, bindings: []string{"{paramRef: {name: limits, parameterNotFoundAction: Deny}, validationActions: [Deny]}"}},
	{name: "parameters that the binding leaves out", policy: only("apps", "deployments", "'*'") + `
paramKind: {apiVersion: v1, kind: ConfigMap}
validations: [{expression: "params == null && object == null", message: no params}]`, bindings: []string{"{validationActions: [Deny]}"}},
	{name: "namespace object", policy: only("apps", "deployments", "CREATE, UPDATE") + `validations: [{expression: "namespaceObject.metadata.labels['tier'] != 'prod' || object.spec.replicas < int(namespaceObject.metadata.annotations.quota)", messageExpression: "'quota of ' + namespaceObject.metadata.name"}]`},
	{name: "namespace object of cluster-scoped objects",
		policy: `validations: [{expression: "namespaceObject != null", message: no namespace}]`},
	{name: "variables", policy: only("", "pods", "CREATE") + `
variables:
- {name: all, expression: "` + containers + `"}
- {name: images, expression: "variables.all.map(c, c.image)"}
- {name: bad, expression: "variables.images.filter(i, !i.startsWith('registry.example.com/'))"}
- {name: unused, expression: object.spec.nothing.at.all}
validations:
- {expression: "variables.bad.size() == 0", messageExpression: "'images from elsewhere: ' + variables.bad.join(', ')"}
- {expression: "variables.images.all(i, !i.endsWith(':latest'))", reason: Forbidden}`},
	{name: "a variable that fails", policy: podWrites + `
variables: [{name: a, expression: object.spec.nothing}, {name: b, expression: "variables.a + 1"}]
validations: [{expression: "variables.b > 0"}, {expression: "object.metadata.name != 'x' || variables.b > 0"}]`},
	{name: "audit and warn", policy: podWrites + `
validations: [{expression: "has(object.metadata.labels.team)", message: "label team is missing"}, {expression: "!has(object.spec.hostNetwork)", message: "no host network"}]
auditAnnotations:
- {key: images, valueExpression: "object.spec.containers.map(c, c.image).join(',')"}
- {key: host, valueExpression: "has(object.spec.hostNetwork) ? 'uses the network of its host' : ''"}`,
		bindings: []string{"validationActions: [Warn, Audit]", "validationActions: [Audit]"}},
	{name: "annotations only", policy: podWrites + `auditAnnotations: [{key: long, valueExpression: "object.spec.containers.map(c, c.name).join(' ') + ' ' + request.operation"}, {key: empty, valueExpression: "''"}]`, bindings: []string{"validationActions: [Deny]", "validationActions: [Warn]"}},
	{name: "an annotation that fails", policy: podWrites + `
failurePolicy: Fail
validations: [{expression: "true"}]
auditAnnotations: [{key: a, valueExpression: "object.spec.hostNetwork ? 'x' : 'y'"}]`},
	{name: "an annotation that fails and is ignored", policy: podWrites + `
failurePolicy: Ignore
validations: [{expression: "!has(object.spec.hostPID)", message: no}]
auditAnnotations: [{key: a, valueExpression: "object.spec.hostNetwork ? 'x' : 'y'"}]`},
	{name: "match conditions", policy: `
matchConditions:
- {name: pods, expression: "request.resource.resource == 'pods'"}
- {name: not-system, expression: "!('system:masters' in request.userInfo.groups) && request.userInfo.username != 'admin'"}
validations: [{expression: "false", message: matched}]`},
	{name: "match conditions that fail", policy: `
matchConditions: [{name: a, expression: "object.spec.replicas > 1"}]
validations: [{expression: "false", message: matched}]`},
	{name: "match conditions that fail and are ignored", policy: `
failurePolicy: Ignore
matchConditions: [{name: a, expression: "object.spec.replicas > 1"}, {name: b, expression: "object.kind == 'Deployment'"}]
validations: [{expression: "false", message: matched}]`},
	{name: "message expressions that fail", policy: podWrites + `validations:
- {expression: "false", messageExpression: "string(object.spec.nothing)", message: fallback}
- {expression: "false", messageExpression: "'x' + string(object.spec.nothing)"}`},
	{name: "message expressions of odd values", policy: podWrites + `validations:
- {expression: "!has(object.spec.hostPID)", messageExpression: "'   '", message: fallback}
- {expression: "has(object.spec.priorityClassName)", messageExpression: "'two\\nlines'", message: fallback}`},
	{name: "trimmed message expressions", policy: podWrites +
		`validations: [{expression: "false", messageExpression: "'  spaces around  '"}]`},
	{name: "reasons", policy: podWrites + `validations:
- {expression: "has(object.spec.priorityClassName)", message: a, reason: Forbidden}
- {expression: "!has(object.spec.serviceAccountName)", message: b, reason: RequestEntityTooLarge}`},

	// Pod Security.
	{name: "privileged", policy: podWrites + `validations: [{expression: "` + containers + `.all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || c.securityContext.privileged == false)", message: privileged containers are not allowed}]`},
	{name: "host namespaces", policy: podWrites + `validations: [{expression: "!object.spec.?hostNetwork.orValue(false) && !object.spec.?hostPID.orValue(false) && !object.spec.?hostIPC.orValue(false)", message: host namespaces are not allowed}]`},
	{name: "host paths", policy: podWrites + `validations: [{expression: "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.hostPath) || v.hostPath.path in ['/var/log', '/etc/ssl'])", messageExpression: "'host paths: ' + object.spec.volumes.filter(v, has(v.hostPath)).map(v, v.hostPath.path).join(', ')"}]`},
	{name: "volume types", policy: podWrites + `
variables: [{name: allowed, expression: "['name', 'configMap', 'csi', 'downwardAPI', 'emptyDir', 'ephemeral', 'persistentVolumeClaim', 'projected', 'secret']"}]
validations: [{expression: "object.spec.?volumes.orValue([]).all(v, v.all(k, k in variables.allowed))", message: volume types}]`},
	{name: "capabilities", policy: podWrites + `validations:
- expression: "` + containers + `.all(c, sets.contains(['NET_BIND_SERVICE'], c.?securityContext.?capabilities.?add.orValue([])))"
  message: only NET_BIND_SERVICE may be added
- expression: "` + containers + `.all(c, 'ALL' in c.?securityContext.?capabilities.?drop.orValue([]))"
  message: all capabilities must be dropped`},
	{name: "run as non-root", policy: podWrites + `validations: [{expression: "(has(object.spec.securityContext) && has(object.spec.securityContext.runAsNonRoot) && object.spec.securityContext.runAsNonRoot) || object.spec.containers.all(c, has(c.securityContext) && has(c.securityContext.runAsNonRoot) && c.securityContext.runAsNonRoot)", message: must not run as root}]`},
	{name: "users", policy: podWrites + `validations: [{expression: "[object.spec.?securityContext.?runAsUser.orValue(1)].all(u, u > 0) && object.spec.containers.all(c, c.?securityContext.?runAsUser.orValue(1) > 0)", message: user 0}]`},
	{name: "seccomp", policy: podWrites + `validations: [{expression: "object.spec.?securityContext.?seccompProfile.?type.orValue('Unconfined') in ['RuntimeDefault', 'Localhost']", message: seccomp}]`},
	{name: "host ports", policy: podWrites + `validations: [{expression: "object.spec.containers.all(c, !has(c.ports) || c.ports.all(p, !has(p.hostPort) || p.hostPort == 0))", message: host ports}]`},
	{name: "escalation", policy: podWrites + `validations: [{expression: "object.spec.containers.all(c, c.securityContext.allowPrivilegeEscalation == false)", message: escalation}]`},
	{name: "sysctls", policy: podWrites + `validations: [{expression: "!object.spec.?securityContext.?sysctls.hasValue() || object.spec.securityContext.sysctls.all(s, s.name.startsWith('net.'))", message: sysctls}, {expression: "object.spec.?securityContext.hasValue()", message: no context}]`},

	// Gatekeeper's and Kyverno's libraries.
	{name: "required labels", policy: podWrites + `
variables: [{name: required, expression: "['app', 'team']"}, {name: missing, expression: "variables.required.filter(l, !(l in object.metadata.?labels.orValue({})))"}]
validations: [{expression: "variables.missing.size() == 0", messageExpression: "'missing labels: ' + variables.missing.join(', ') + ' of ' + string(variables.required.size())"}]`},
	{name: "label values", policy: podWrites + `validations: [{expression: "object.metadata.labels.all(k, object.metadata.labels[k].matches('^[a-z]([-a-z0-9.]{0,61}[a-z0-9])?$'))", message: label values}]`},
	{name: "allowed repositories", policy: podWrites + `
paramKind: {apiVersion: v1, kind: ConfigMap}
variables: [{name: allowed, expression: "params.data.registries.split(',')"}]
validations: [{expression: "object.spec.containers.all(c, variables.allowed.exists(r, c.image.startsWith(r)))", messageExpression: "'allowed: ' + params.data.registries"}]`,
		bindings: []string{"{paramRef: {name: limits, namespace: team-a, parameterNotFoundAction: Deny}, validationActions: [Deny]}"}},
	{name: "image digests", policy: podWrites + `validations: [{expression: "` + containers + `.all(c, c.image.matches('@sha256:[a-f0-9]{64}$'))", message: digests}, {expression: "object.spec.containers.map(c, c.image.split('@')[0]).all(i, i.lastIndexOf(':') < i.lastIndexOf('/') || i.indexOf('/') == -1)", message: tags}]`},
	{name: "tags", policy: podWrites + `validations: [{expression: "object.spec.containers.all(c, c.image.contains('@') || c.image.find(':[^/]+$') != '' && !c.image.endsWith(':latest'))", messageExpression: "'latest: ' + string(object.spec.containers.filter(c, c.image.endsWith(':latest')).size())"}]`},
	{name: "limits of resources", policy: podWrites + `validations:
- expression: "object.spec.containers.all(c, has(c.resources) && has(c.resources.limits) && quantity(c.resources.limits.memory).compareTo(quantity('2Gi')) <= 0)"
  message: memory
- expression: "object.spec.containers.all(c, isQuantity(string(c.?resources.?limits.?cpu.orValue('0'))) && !quantity(string(c.?resources.?limits.?cpu.orValue('0'))).isGreaterThan(quantity('4')))"
  message: cpu`},
	{name: "sums of quantities", policy: podWrites + `validations: [{expression: "object.spec.containers.map(c, quantity(c.?resources.?requests.?memory.orValue('0'))).all(q, q.asApproximateFloat() < 1.0e12 && sign(q) >= 0) && quantity('1Gi').add(quantity('512Mi')).sub(1).isGreaterThan(quantity('1Gi'))", message: requests}]`},
	{name: "probes", policy: podWrites + `validations: [{expression: "object.spec.containers.all(c, has(c.livenessProbe) && has(c.readinessProbe))", message: probes}, {expression: "object.spec.containers.exists_one(c, has(c.livenessProbe))", message: one}]`},
	{name: "secrets in the environment", policy: podWrites + `validations: [{expression: "object.spec.containers.all(c, !has(c.env) || !c.env.exists(e, e.name.lowerAscii().matches('pass|secret|token') && has(e.value)))", message: secrets}]`},
	{name: "unique names", policy: podWrites + `validations: [{expression: "object.spec.containers.map(c, c.name).all(n, object.spec.containers.map(c, c.name).filter(m, m == n).size() == 1) && object.spec.containers.map(c, c.name).isSorted()", message: names}, {expression: "object.spec.containers.size() < 3", message: few}]`},
	{name: "host network of services", policy: only("", "services", "CREATE, UPDATE") + `validations:
- {expression: "object.spec.type != 'LoadBalancer' || object.metadata.?annotations[?'service.beta.kubernetes.io/internal'].orValue('false') == 'true'", message: internal only}
- {expression: "!has(object.spec.externalIPs)", message: CVE-2020-8554}`},
	{name: "addresses", policy: only("", "services", "CREATE, UPDATE") + `validations:
- {expression: "object.spec.?externalIPs.orValue([]).all(i, isIP(i) && cidr('10.0.0.0/8').containsIP(i))", message: outside}
- {expression: "object.spec.?loadBalancerSourceRanges.orValue([]).all(c, isCIDR(c) && cidr('10.0.0.0/8').containsCIDR(c) && cidr(c).prefixLength() >= 8)", message: ranges}
- {expression: "!has(object.spec.clusterIP) || ip(object.spec.clusterIP).family() == 4 && !ip(object.spec.clusterIP).isLoopback()", messageExpression: "'family ' + string(ip(object.spec.clusterIP).family()) + ' ' + string(ip(object.spec.clusterIP))"}
- {expression: "object.spec.externalIPs.all(i, ip(i) == ip('10.0.0.4') || ip.isCanonical(i))", message: canonical}`},
	{name: "ports", policy: only("", "services", "'*'") + `validations: [{expression: "object.spec.ports.all(p, p.port in [443, 8443] || (has(p.name) && p.name == 'http'))", message: ports}, {expression: "object.spec.ports.all(p, type(p.?targetPort.orValue(0)) == int)", message: numbers}]`},
	{name: "hosts of ingresses", policy: only("networking.k8s.io", "ingresses", "CREATE") + `validations:
- {expression: "object.spec.rules.all(r, object.spec.?tls.orValue([]).exists(t, r.host in t.hosts))", message: tls}
- {expression: "object.spec.rules.all(r, !r.host.startsWith('*'))", messageExpression: "'wildcards: ' + object.spec.rules.map(r, r.host).filter(h, h.startsWith('*')).join()"}
- {expression: "object.spec.rules.all(r, format.dns1123Subdomain().validate(r.host).hasValue() == false)", messageExpression: "format.dns1123Subdomain().validate(object.spec.rules[1].host).value()[0]"}`},
	{name: "urls", policy: only("networking.k8s.io", "ingresses", "'*'") + `
variables: [{name: u, expression: "url(object.metadata.annotations['example.com/backend'])"}]
validations:
- {expression: "isURL(object.metadata.annotations['example.com/backend']) && variables.u.getScheme() == 'http'", messageExpression: "variables.u.getScheme() + ' ' + variables.u.getHost() + ' ' + variables.u.getHostname() + ' ' + variables.u.getPort() + ' ' + variables.u.getEscapedPath() + ' ' + string(variables.u.getQuery().x.size())"}`},
	{name: "service accounts", policy: podWrites + `validations: [{expression: "has(object.spec.serviceAccountName) && object.spec.serviceAccountName != 'default' && object.spec.?automountServiceAccountToken.orValue(true) == false", message: tokens}]`},
	{name: "tolerations", policy: podWrites + `validations: [{expression: "!has(object.spec.tolerations) || object.spec.tolerations.all(t, has(t.key))", message: tolerations}, {expression: "object.spec.terminationGracePeriodSeconds <= 300", message: grace}]`},
	{name: "node selection", policy: podWrites + `validations: [{expression: "has(object.spec.nodeSelector) && 'disk' in object.spec.nodeSelector && object.spec.nodeSelector == {'disk': 'ssd'}", message: nodes}, {expression: "!has(object.spec.nodeName)", reason: Forbidden, message: node}]`},
	{name: "expiry", policy: podWrites + `validations: [{expression: "timestamp(object.metadata.annotations.expires) > timestamp('2027-01-01T00:00:00Z')", message: expired}]`},

	// Operations.
	{name: "deletions", policy: only("", "pods", "DELETE") + `validations: [{expression: "object == null && !has(oldObject.metadata.labels.team)", messageExpression: "'protected: ' + oldObject.metadata.labels.team"}]`},
	{name: "options of deletions", policy: only("", "'*'", "DELETE") + `validations: [{expression: "!has(request.options.gracePeriodSeconds) || request.options.gracePeriodSeconds > 0", message: no force}, {expression: "request.operation == 'DELETE' && request.name != 'bad-1'", messageExpression: "request.name + ' in ' + request.namespace"}]`},
	{name: "connections", policy: only("", "pods/exec,pods/attach", "CONNECT") + `validations: [{expression: "request.subResource != 'exec' || !object.tty || object.container != 'web'", messageExpression: "'no shell in ' + request.name + ': ' + object.command.join(' ')"}]`},
	{name: "subresources", policy: only("", "pods/ephemeralcontainers,pods/status", "UPDATE") + `validations: [{expression: "request.subResource == 'status' && request.requestSubResource == 'status'", messageExpression: "request.subResource + ' ' + request.kind.kind + ' ' + request.requestKind.version + ' ' + request.resource.resource"}]`},
	{name: "scale", policy: only("apps", "deployments/scale", "UPDATE") + `validations: [{expression: "object.spec.replicas - oldObject.spec.replicas < 5", messageExpression: "'from ' + string(oldObject.spec.replicas) + ' to ' + string(object.spec.replicas)"}]`},
	{name: "dry runs", policy: `validations: [{expression: "!request.dryRun", message: dry}, {expression: "has(request.dryRun) && has(request.userInfo)", message: members}]`},
	{name: "immutable", policy: only("apps", "deployments", "UPDATE") + `validations: [{expression: "object.spec.selector == oldObject.spec.selector && object.metadata.labels.env == oldObject.metadata.labels.env", message: immutable}]`},
	{name: "immutable once it is set", policy: `
matchConditions: [{name: update, expression: "oldObject != null && object != null"}]
validations: [{expression: "!has(oldObject.spec) || !has(oldObject.spec.owner) || oldObject.spec.owner == object.spec.?owner.orValue('')", message: owner}, {expression: "oldObject.metadata.?labels.orValue({}) == object.metadata.?labels.orValue({})", message: labels}]`},
	{name: "only upwards", policy: only("apps", "deployments", "UPDATE") + `validations: [{expression: "object.metadata.generation > oldObject.metadata.generation && object.spec.replicas >= oldObject.spec.replicas", messageExpression: "string(oldObject.spec.replicas - object.spec.replicas) + ' fewer'"}]`},
	{name: "labels of namespaces", policy: only("", "namespaces", "'*'") + `validations: [{expression: "object.metadata.labels.tier in ['prod', 'test'] && namespaceObject == null", messageExpression: "'tier of ' + request.name + ' in ' + request.namespace"}]`},
	{name: "requests", policy: `validations: [{expression: "request.kind.group == request.requestKind.group && request.resource == request.requestResource && request.name == object.?metadata.?name.orValue('none')", messageExpression: "request.resource.group + '/' + request.resource.version + '/' + request.resource.resource + ' ' + request.name + ' ' + request.namespace"}]`},
	{name: "groups of users", policy: `validations: [{expression: "'dev' in request.userInfo.groups && request.userInfo.username != 'jane' && !has(request.userInfo.extra)", messageExpression: "request.userInfo.username + string(request.userInfo.groups.size())"}]`},

	// Matching.
	{name: "selectors", policy: "matchConstraints:\n  resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*/*']}]\n  namespaceSelector: {matchExpressions: [{key: tier, operator: In, values: [prod]}]}\n  objectSelector: {matchLabels: {app: web}}\nvalidations: [{expression: 'false', message: selected}]"},
	{name: "exclusions", policy: "matchConstraints:\n  resourceRules: [{apiGroups: ['', apps], apiVersions: [v1], operations: [CREATE, UPDATE, DELETE], resources: ['*']}]\n  excludeResourceRules: [{apiGroups: [''], apiVersions: ['*'], operations: ['*'], resources: [services, namespaces]}, {apiGroups: [apps], apiVersions: ['*'], operations: [DELETE], resources: ['*'], resourceNames: [web]}]\nvalidations: [{expression: 'false', message: selected}]"},
	{name: "names of resources", policy: "matchConstraints:\n  resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*'], resourceNames: [good, r1]}]\nvalidations: [{expression: 'false', message: selected}]"},
	{name: "scopes", policy: "matchConstraints:\n  resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*'], scope: Cluster}]\nvalidations: [{expression: 'false', message: selected}]"},
	{name: "exact", policy: "matchConstraints:\n  matchPolicy: Exact\n  resourceRules: [{apiGroups: [apps], apiVersions: [v1, v1beta1], operations: [CREATE], resources: ['deployments']}]\nvalidations: [{expression: 'false', message: selected}]"},
	{name: "bindings narrow", policy: `validations: [{expression: "false", message: selected}]`, bindings: []string{
		"{validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {tier: test}}}}",
		"{validationActions: [Warn], matchResources: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: ['*']}]}}",
		"{validationActions: [Audit], matchResources: {objectSelector: {matchExpressions: [{key: env, operator: Exists}]}, excludeResourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: [CREATE], resources: ['*']}]}}"}},

	// The authorizer.
	{name: "secondary authorization", policy: podWrites + `validations: [{expression: "!has(object.spec.hostNetwork) || authorizer.group('policy.example.com').resource('networks').namespace(object.metadata.namespace).name('host').check('use').allowed()", message: may not}, {expression: "authorizer.group('').resource('pods').subresource('exec').namespace('x').name('jane-may').check('use').allowed()", message: never said}]`},
	{name: "reasons of the authorizer", policy: `validations: [{expression: "authorizer.path('/healthz').check('get').allowed()", message: path}, {expression: "authorizer.requestResource.check('forbidden').reason() == 'x'", message: reason}, {expression: "authorizer.serviceAccount('team-a', 'web').group('apps').resource('deployments').check('create').allowed()", message: account}]`},
	{name: "an authorizer that fails", policy: podWrites + `validations: [{expression: "!authorizer.requestResource.check('broken').errored()", message: errored}, {expression: "authorizer.requestResource.fieldSelector('spec.nodeName=x').labelSelector('a=b').check('list').allowed()", message: selectors}]`},

	// Values.
	{name: "versions", policy: only("release.example.com", "releases", "'*'") + `validations:
- {expression: "isSemver(object.spec.version, true) && semver(object.spec.version, true).isGreaterThan(semver(string(object.spec.minimum)))", message: version}
- {expression: "semver('1.2.3').major() == 1 && semver('1.2.3').compareTo(semver('1.10.0')) < 0 && !isSemver(object.spec.version)", message: strict}`},
	{name: "times", policy: only("release.example.com", "releases", "'*'") + `validations:
- {expression: "timestamp(object.spec.notAfter) - timestamp(object.spec.notBefore) > duration('1000h') && timestamp(object.spec.notBefore).getFullYear() == 2026 && timestamp(object.spec.notAfter).getHours() == 10", message: times}
- {expression: "duration(object.spec.window) < duration('1h') || duration(object.spec.window).getMinutes() == 91", messageExpression: "string(duration(object.spec.window)) + ' ' + string(timestamp(object.spec.notAfter))"}
- {expression: "timestamp(object.spec.notAfter).getDayOfWeek('Europe/Berlin') == 2", message: weekday}`},
	{name: "numbers", policy: only("release.example.com", "releases", "'*'") + `validations:
- {expression: "object.spec.ratio > 0 && object.spec.ratio * 4.0 == 3.0 && object.spec.weight == 3.0", message: ratio}
- {expression: "object.spec.big > 9007199254740992 && object.spec.big % 2 == 1 && uint(object.spec.count) > 1u", message: big}
- {expression: "object.spec.weight / 2 == 1 && -object.spec.weight < 0u && object.spec.weight in [dyn(1), dyn(2.5), dyn(3u)]", message: mixed}
- {expression: "double(object.spec.weight) <= object.spec.count && int(object.spec.ratio) == 0", message: converted}`},
	{name: "overflow", policy: only("release.example.com", "releases", "'*'") + `validations: [{expression: "object.spec.big * 4611686018427387904 > 0", message: product}, {expression: "object.spec.count + 9223372036854775807 > 0", message: sum}, {expression: "uint(object.spec.weight) > 0u", message: unsigned}, {expression: "1 / (object.spec.weight - 3) > 0", message: zero}]`},
	{name: "strings", policy: only("release.example.com", "releases", "'*'") + `validations:
- {expression: "object.spec.path.split('/').size() == 4 && object.spec.path.substring(1).replace('/', '.') == 'a.b.c.txt' && object.spec.path.charAt(0) == '/'", message: path}
- {expression: "object.spec.path.trim().upperAscii().endsWith('TXT') && '%s-%d'.format([object.metadata.name, object.spec.weight]) == 'r1-3' && strings.quote(object.spec.empty).size() == 2", message: format}
- {expression: "object.spec.path.findAll('[a-z]+').join('') == 'abctxt' && object.spec.version.lastIndexOf('b') > 10", message: found}`},
	{name: "lists", policy: only("release.example.com", "releases", "'*'") + `validations:
- {expression: "sets.equivalent(object.spec.tags, ['a', 'b']) && !sets.intersects(object.spec.tags, ['z']) && object.spec.tags.distinct().size() == 2", message: sets}
- {expression: "object.spec.tags.indexOf('b') == 1 && object.spec.tags.lastIndexOf('a') == 2 && object.spec.tags.slice(0, 2) == ['a', 'b']", message: places}
- {expression: "object.spec.matrix.flatten().sum() == 6 && object.spec.matrix.map(m, m.max()).min() == 2 && lists.range(3) == [0, 1, 2] && object.spec.tags.reverse()[0] == 'a'", message: sums}
- {expression: "object.spec.tags.exists(i, t, i == 1 && t == 'b') && object.spec.tags.transformList(i, t, t + string(i))[2] == 'a2'", message: two variables}`},
	{name: "maps", policy: only("release.example.com", "releases", "'*'") + `validations:
- {expression: "object.spec.labels['a.b/c'] == 'd' && object.spec.labels.exists(k, k.contains('__')) && object.spec.labels.namespace == 'n'", message: keys}
- {expression: "object.spec.labels.transformMap(k, v, v.size() == 1, v + v)['a.b/c'] == 'dd' && object.spec.labels.all(k, v, k != v)", message: transformed}
- {expression: "{'a': dyn(1), 'b': object.spec.weight} == {'b': dyn(3), 'a': 1.0 == 1.0 ? dyn(1) : 2} && size(object.spec.labels) == 3", message: equal}`},
	{name: "null and missing", policy: only("release.example.com", "releases", "'*'") + `validations:
- {expression: "has(object.spec.owner) && object.spec.owner == null && object.spec.?owner.hasValue()", message: "null"}
- {expression: "object.spec.?nothing.?at.?all.orValue('x') == 'x' && object.?spec[?'nothing'].or(optional.of('y')).value() == 'y' && optional.none() == object.spec.?nothing", message: missing}
- {expression: "[?object.spec.?owner, ?object.spec.?nothing].size() == 1 && {?'a': object.spec.?nothing}.size() == 0", message: built}
- {expression: "object.spec.owner.startsWith('j')", message: of null}`},
	{name: "types", policy: only("release.example.com", "releases", "'*'") + `validations: [{expression: "type(object.spec.weight) == int && type(object.spec.ratio) == double && type(object.spec.tags) == list && type(object.spec.owner) == null_type && type(object.spec.labels) == map", message: types}, {expression: "string(object.spec.weight) == '3' && bool('true') && object.spec.version == string(bytes(object.spec.version))", message: converted}]`},
	{name: "errors and logic", policy: only("release.example.com", "releases", "'*'") + `validations:
- {expression: "object.spec.nothing == 1 || true", message: never}
- {expression: "!(false && object.spec.nothing == 1) && (object.spec.weight == 3 || object.spec.nothing)", message: right}
- {expression: "object.spec.tags.exists(t, t == 'a' || t.nothing) && object.spec.tags.all(t, t != 1)", message: loops}
- {expression: "object.spec.weight < 'a'", message: types}`},
	{name: "errors and logic, ignored", policy: only("release.example.com", "releases", "'*'") + `
failurePolicy: Ignore
validations: [{expression: "object.spec.nothing == 1", message: a}, {expression: "object.spec.weight > 2", message: b}, {expression: "object.spec.weight < 'a'", message: c}]`},
	{name: "escaped names", policy: only("release.example.com", "releases", "'*'") + `validations: [{expression: "has(object.spec.labels.namespace) && object.spec.labels.__namespace__ == 'n'", message: a}, {expression: "object.spec.labels.x__underscores__y == 'z'", message: b}]`},
	{name: "long lists", policy: `validations: [{expression: "!has(object.spec.tags) || object.spec.tags.all(t, t.size() == 1 && t.matches('^[a-z]$')) && object.spec.tags.filter(t, t == 'x').size() < 900", messageExpression: "string(object.spec.tags.size()) + ' tags'"}, {expression: "!has(object.data) || object.data.lines.split(',').all(l, l in ['line', ''] && object.data.lines.contains(l)) && object.data.lines.split(',').size() < 100", message: lines}]`},
	{name: "more than may be spent", policy: only("release.example.com", "releases", "'*'") + `validations: [{expression: "object.spec.tags.all(a, object.spec.tags.all(b, object.spec.tags.all(c, a == b || b == c || a != c)))", message: cubed}]`},
	{name: "more than may be spent, ignored", policy: only("release.example.com", "releases", "'*'") + `
failurePolicy: Ignore
validations: [{expression: "object.spec.tags.all(a, object.spec.tags.all(b, object.spec.tags.all(c, a == b || b == c || a != c)))", message: cubed}, {expression: "object.spec.weight > 0", message: weight}]`},
	{name: "named formats", policy: `
variables: [{name: bad, expression: "format.named('dns1123Label').value().validate(object.?metadata.?name.orValue('None'))"}]
validations: [{expression: "!variables.bad.hasValue() && format.named('nothing').hasValue() == false", messageExpression: "variables.bad.value().join('; ')"}, {expression: "object.metadata.labels.all(k, v, !format.labelValue().validate(v).hasValue() && !format.qualifiedName().validate(k).hasValue())", messageExpression: "object.metadata.labels.map(k, format.labelValue().validate(object.metadata.labels[k]).orValue(['']).join()).join()"}]`},
	{name: "long texts", policy: only("", "configmaps", "CREATE") + `
variables: [{name: l, expression: "object.data.lines + object.data.lines + object.data.lines + object.data.lines"}]
validations:
- {expression: "object.data.n == '13'", messageExpression: "string(variables.l)", message: fallback}
- {expression: "object.data.n == '13'", messageExpression: "string(variables.l).substring(0, 5000)", message: fallback}
auditAnnotations: [{key: long, valueExpression: "string(variables.l) + variables.l"}]`, bindings: []string{"validationActions: [Deny]", "validationActions: [Audit]"}},
	{name: "the same value twice", policy: podWrites + `auditAnnotations: [{key: a, valueExpression: "string(object.spec.containers[0].name)"}, {key: b, valueExpression: "params == null ? 'none' : string(params.metadata.name)"}]
paramKind: {apiVersion: v1, kind: ConfigMap}`, bindings: []string{"{paramRef: {selector: {}, namespace: team-a, parameterNotFoundAction: Deny}, validationActions: [Deny]}", "{paramRef: {name: limits, namespace: team-b, parameterNotFoundAction: Deny}, validationActions: [Warn]}"}},
	{name: "indices", policy: only("release.example.com", "releases", "'*'") + `validations:
- {expression: "object.spec.tags[1] == 'b' && object.spec.tags[0.0] == 'a' && {1: 'x'}[object.spec.weight - 2] == 'x'", message: right}
- {expression: "object.spec.tags[object.spec.weight] == 'b'", message: beyond}
- {expression: "object.spec.tags[-1] == 'b'", message: negative}
- {expression: "object.spec.labels[1] == 'b'", message: no key}
- {expression: "object.spec.tags['a'] == 'b'", message: no index}`},
	{name: "comparisons of types", policy: only("release.example.com", "releases", "'*'") + `validations:
- {expression: "object.spec.version != 3 && object.spec.owner != 0 && object.spec.tags != {} && object.spec.labels != 'x'", message: unequal}
- {expression: "object.spec.ratio <= object.spec.weight && object.spec.weight < object.spec.count && object.spec.big >= object.spec.ratio", message: ordered}
- {expression: "object.spec.version > object.spec.weight", message: not ordered}
- {expression: "object.spec.owner in object.spec.tags || object.spec.version in object.spec.labels", message: membership}
- {expression: "object.spec.owner in [null] && object.spec.weight in object.spec.tags", message: of others}
- {expression: "'a' in object.spec.owner", message: in nothing}`},
	{name: "conversions", policy: only("release.example.com", "releases", "'*'") + `validations:
- {expression: "int(object.spec.version) == 1", message: int}
- {expression: "int('-12') == -12 && double('1e3') == 1000.0 && uint('7') == 7u && string(1.50) == '1.5' && string(1e21) == '1e+21' && string(b'ab') == 'ab'", message: literal}
- {expression: "string(duration('90m')) == '5400s' && string(timestamp('2026-01-01T00:00:00.5Z')) == '2026-01-01T00:00:00.5Z' && int(timestamp('1970-01-01T00:01:00Z')) == 60", message: times}
- {expression: "duration(object.spec.version) > duration('1s')", message: duration}
- {expression: "timestamp(object.spec.version) > timestamp('2026-01-01T00:00:00Z')", message: timestamp}
- {expression: "bool(object.spec.version)", message: bool}
- {expression: "int(object.spec.ratio * 1e30) > 0", message: range}`},
	{name: "patterns", policy: only("release.example.com", "releases", "'*'") + `validations:
- {expression: "object.spec.version.matches(object.spec.version)", message: itself}
- {expression: "object.spec.version.matches(object.metadata.name + '(')", message: broken}
- {expression: "object.spec.version.matches('^v?[0-9]+([.][0-9]+){2}(-[0-9A-Za-z.-]+)?([+][0-9A-Za-z.-]+)?$')", message: semantic}
- {expression: "object.metadata.name.matches('(?i)^R[[:digit:]]$') && !'ä'.matches('^[a-z]$') && 'ä'.matches('^.$') && 'a\\nb'.matches('(?m)^b$')", message: flags}`},
	{name: "unicode", policy: podWrites + `validations:
- {expression: "'größe😀'.size() == 6 && bytes('größe').size() == 7 && 'größe😀'.charAt(5) == '😀' && 'größe'.substring(2, 4) == 'öß' && 'ÄÖ'.lowerAscii() == 'ÄÖ'", message: runes}
- {expression: "'%s %.3f %x %e %b %o %X %d'.format(['ü', 1.0, 255, 1234.5, 5, 8, 'hi', 7u]) == 'x'", messageExpression: "'%s %.3f %x %e %b %o %X %d'.format(['ü', 1.0, 255, 1234.5, 5, 8, 'hi', 7u])"}
- {expression: "false", messageExpression: "'%s %s %s %s'.format([[1, 'a'], {'k': 1.5}, null, duration('1h')])"}
- {expression: "false", messageExpression: "'%d'.format([object.metadata.name])", message: fallback}`},
	{name: "branches", policy: `validations:
- {expression: "has(object.spec) ? (has(object.spec.replicas) ? object.spec.replicas < 6 : true) : request.operation == 'DELETE'", message: nested}
- {expression: "(object == null ? oldObject : object).metadata.?name.orValue('') != 'web6'", message: either}
- {expression: "[object, oldObject].filter(o, o != null).all(o, has(o.metadata) && o.metadata.?namespace.orValue('team-a') == 'team-a')", message: list}`},
	{name: "options", policy: `validations: [{expression: "request.options == null || !has(request.options.dryRun)", message: options}, {expression: "has(request.options) && request.options.kind == 'DeleteOptions'", messageExpression: "request.operation + ' ' + request.userInfo.username"}]`},
	{name: "nested loops", policy: podWrites + `validations:
- {expression: "object.spec.containers.all(c, object.spec.containers.exists(d, d.name == c.name && c.?ports.orValue([]).all(p, d.?ports.orValue([]).exists(q, q == p))))", message: nested}
- {expression: "object.spec.containers.map(c, has(c.ports), c.ports.map(p, p.containerPort)).all(l, l.all(p, p > 1024))", message: filtered}`},
	{name: "budget of variables", policy: only("release.example.com", "releases", "CREATE") + `
variables: [{name: a, expression: "object.spec.tags.filter(a, object.spec.tags.exists(b, b == 'q')).size()"}, {name: b, expression: "variables.a + object.spec.tags.filter(a, object.spec.tags.exists(b, b == 'q')).size()"}]
validations: [{expression: "variables.a == 0 && variables.a == 0", message: first}, {expression: "variables.b == 0", message: second}, {expression: "variables.b < variables.a", message: third}]`},
	{name: "quotas of objects", policy: `
matchConditions: [{name: has-spec, expression: "object != null && has(object.spec)"}]
variables:
- {name: size, expression: "has(object.spec.containers) ? object.spec.containers.size() : has(object.spec.rules) ? object.spec.rules.size() : 0"}
- {name: most, expression: "namespaceObject == null ? 0 : int(namespaceObject.metadata.?annotations[?'quota'].orValue('1'))"}
validations: [{expression: "variables.size <= variables.most", messageExpression: "'at most %d, not %d'.format([variables.most, variables.size])", reason: Forbidden}]`},
}
