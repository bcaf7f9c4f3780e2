{{- define "gateway.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "gateway.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "gateway.name" .) .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name (include "gateway.name" .) | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "gateway.selector" -}}
app.kubernetes.io/name: {{ include "gateway.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gateway.labels" -}}
{{- with .Values.commonLabels -}}
{{ toYaml . }}
{{ end -}}
{{ include "gateway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "gateway.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "gateway.resources" -}}
{{- if .Values.resources -}}
{{ toYaml .Values.resources }}
{{- else -}}
requests:
  cpu: {{ ternary "100m" "250m" (eq .Values.mode "Sidecar") }}
  memory: 128Mi
limits:
  memory: {{ ternary "256Mi" "512Mi" (eq .Values.mode "Sidecar") }}
{{- end -}}
{{- end }}

{{- /*
The listeners that speak TLS, as JSON: how each is configured, and the volumes with its files. KEY is where its values are.
*/ -}}
{{- define "gateway.listener" -}}
{{- $tls := .tls -}}
{{- if not $tls.secretName -}}
{{- if or $tls.minVersion $tls.clientCAConfigMap $tls.clientCASecret $tls.clientCertificates -}}
{{- fail (printf "%s.secretName: required value, since other values of %s are set" .key .key) -}}
{{- end -}}
{{- else -}}
{{- $directory := printf "/etc/gateway/%s" .name -}}
{{- $files := dict "certFile" (printf "%s/tls.crt" $directory) "keyFile" (printf "%s/tls.key" $directory) -}}
{{- $volumes := list (dict "name" .name "secret" (dict "secretName" $tls.secretName)) -}}
{{- $authorities := trimSuffix "tls" .name | printf "%sclient-ca" -}}
{{- if and $tls.clientCAConfigMap $tls.clientCASecret -}}
{{- fail (printf "%s.clientCASecret: must not be set beside %s.clientCAConfigMap" .key .key) -}}
{{- else if $tls.clientCAConfigMap -}}
{{- $volumes = append $volumes (dict "name" $authorities "configMap" (dict "name" $tls.clientCAConfigMap)) -}}
{{- else if $tls.clientCASecret -}}
{{- $volumes = append $volumes (dict "name" $authorities "secret" (dict "secretName" $tls.clientCASecret)) -}}
{{- else if has $tls.clientCertificates (list "Request" "Require") -}}
{{- fail (printf "%s.clientCertificates: %s needs %s.clientCAConfigMap or %s.clientCASecret" .key $tls.clientCertificates .key .key) -}}
{{- end -}}
{{- if gt (len $volumes) 1 -}}
{{- $_ := set $files "clientCAFile" (printf "/etc/gateway/%s/ca.crt" $authorities) -}}
{{- end -}}
{{- with $tls.minVersion -}}{{- $_ := set $files "minVersion" . -}}{{- end -}}
{{- with $tls.clientCertificates -}}{{- $_ := set $files "clientCertificates" . -}}{{- end -}}
{{- toJson (dict "tls" $files "volumes" $volumes) -}}
{{- end -}}
{{- end }}

{{- define "gateway.public" -}}
{{- include "gateway.listener" (dict "tls" .Values.tls "name" "tls" "key" "tls") -}}
{{- end }}

{{- /* The further listeners, as JSON: how each is configured, its ports, and the volumes with its files. */ -}}
{{- define "gateway.listeners" -}}
{{- $all := list -}}
{{- $ports := list 8080 8081 -}}
{{- range $i, $one := .Values.listeners -}}
{{- $port := int $one.port -}}
{{- if has $port $ports -}}
{{- fail (printf "listeners[%d].port: %d is another listener's; hosts that share a port are in configuration.listeners" $i $port) -}}
{{- end -}}
{{- $ports = append $ports $port -}}
{{- $own := dict "name" $one.name "listen" (printf "0.0.0.0:%d" $port) -}}
{{- $own = merge $own (pick $one "hosts" "redirectToHTTPS" "hsts" "proxyProtocol") -}}
{{- $volumes := list -}}
{{- with get $one "tls" -}}
{{- $tls := merge (dict) . (dict "secretName" "" "minVersion" "" "clientCAConfigMap" "" "clientCASecret" "" "clientCertificates" "") -}}
{{- $made := include "gateway.listener" (dict "tls" $tls "name" (printf "listener-%s-tls" $one.name) "key" (printf "listeners[%d].tls" $i)) | fromJson -}}
{{- with get $made "tls" -}}{{- $_ := set $own "tls" . -}}{{- end -}}
{{- $volumes = get $made "volumes" | default list -}}
{{- end -}}
{{- $all = append $all (dict "own" $own "volumes" $volumes "port" $port "servicePort" (get $one "servicePort" | default 0 | int)) -}}
{{- end -}}
{{- toJson $all -}}
{{- end }}

{{- define "gateway.admin" -}}
{{- if eq .Values.admin.tls.clientCertificates "Require" -}}
{{- fail "admin.tls.clientCertificates: must not be Require, since the kubelet's probes show no certificate" -}}
{{- end -}}
{{- include "gateway.listener" (dict "tls" .Values.admin.tls "name" "admin-tls" "key" "admin.tls") -}}
{{- end }}

{{- /* The settings that need a restart, as in the table of docs/configuration.md. */ -}}
{{- define "gateway.needsRestart" -}}
{{- $all := include "gateway.configuration" . | fromYaml -}}
{{- $http2 := default dict (get $all "http2") -}}
{{- $limits := default dict (get $all "limits") -}}
{{- $telemetry := default dict (get $all "telemetry") -}}
{{- $log := default dict (get $telemetry "log") -}}
{{- toYaml (list
  (pick $all "admin" "bundles" "kubernetes" "redis")
  (pick $http2 "enabled")
  (pick $limits "bodiesInFlightBytes" "heavyRequests" "connections")
  (pick $log "format")
  (pick $telemetry "audit" "decisionLogs" "tracing" "metrics")
) -}}
{{- end -}}

{{- /* The configuration file: what the chart decides wins over the values. */ -}}
{{- define "gateway.configuration" -}}
{{- if not .Values.existingConfigMap -}}
{{- $own := deepCopy .Values.configuration -}}
{{- $public := include "gateway.public" . | fromJson -}}
{{- $admin := dict "listen" "0.0.0.0:8081" -}}
{{- with get (include "gateway.admin" . | fromJson) "tls" -}}{{- $_ := set $admin "tls" . -}}{{- end -}}
{{- with .Values.admin.tokenSecret -}}
{{- if .name -}}{{- $_ := set $admin "tokenFile" (printf "/etc/gateway/admin-token/%s" .key) -}}{{- end -}}
{{- end -}}
{{- if include "gateway.hasTest" . -}}
{{- $_ := set $admin "hosts" (append (dig "admin" "hosts" list $own) (include "gateway.testHost" .)) -}}
{{- end -}}
{{- $fixed := dict "apiVersion" "admission-gateway.io/v1alpha1" "kind" "GatewayConfiguration" "listen" "0.0.0.0:8080" "admin" $admin -}}
{{- $paths := include "gateway.policyPaths" . | fromJsonArray -}}
{{- $_ := set $fixed "policies" $paths -}}
{{- with dig "policies" "lastGood" nil $own -}}
{{- $_ := set $fixed "policies" (dict "paths" $paths "lastGood" .) -}}
{{- end -}}
{{- with get $public "tls" -}}{{- $_ := set $fixed "tls" . -}}{{- end -}}
{{- $further := list -}}
{{- range include "gateway.listeners" . | fromJsonArray -}}{{- $further = append $further .own -}}{{- end -}}
{{- with $further -}}{{- $_ := set $fixed "listeners" (concat . (get $own "listeners" | default list)) -}}{{- end -}}
{{- if eq .Values.mode "Ingress" -}}
{{- $_ := set $fixed "replicas" (.Values.autoscaling.enabled | ternary .Values.autoscaling.maxReplicas .Values.replicas) -}}
{{- end -}}
{{- if eq .Values.mode "APIServer" -}}
{{- if get $own "upstreams" -}}
{{- fail "configuration.upstreams: must be empty, since mode APIServer stands before the cluster's own API server" -}}
{{- end -}}
{{- else if and (not (get $own "upstreams")) (not .Values.controller.enabled) -}}
{{- fail (printf "configuration.upstreams: required value in mode %s: the backends with their endpoints" .Values.mode) -}}
{{- end -}}
{{- if .Values.controller.enabled -}}
{{- $watch := dict "controllerName" .Values.controller.controllerName
  "service" (printf "%s/%s" .Release.Namespace (include "gateway.fullname" .))
  "lease" (dict "namespace" .Release.Namespace "name" (include "gateway.fullname" .)) -}}
{{- with .Values.controller.namespaces -}}{{- $_ := set $watch "namespaces" . -}}{{- end -}}
{{- $_ := set $fixed "kubernetes" (dict "watch" (merge $watch (dig "kubernetes" "watch" dict $own))) -}}
{{- end -}}
{{- if and (eq .Values.mode "APIServer") (not (hasKey $own "identity")) -}}
{{- $authenticators := list (dict "tokenReview" (dict "upstream" "kubernetes")) -}}
{{- if dig "tls" "clientCAFile" "" $public -}}
{{- $authenticators = append $authenticators (dict "clientCertificate" dict) -}}
{{- end -}}
{{- $_ := set $fixed "identity" (dict "authenticators" $authenticators "anonymous" "Allow") -}}
{{- end -}}
{{- if not (get $own "upstreams") -}}{{- $own = omit $own "upstreams" -}}{{- end -}}
{{- toYaml (mergeOverwrite (omit $own "policies") $fixed) -}}
{{- else if .Values.configuration -}}
{{- fail "configuration: must be empty beside existingConfigMap, which has the whole configuration" -}}
{{- end -}}
{{- end }}

{{- /* Where the policy files are, as JSON: paths of the configuration. */ -}}
{{- define "gateway.policyPaths" -}}
{{- $paths := list -}}
{{- if .Values.policies -}}{{- $paths = append $paths "/etc/gateway/policies" -}}{{- end -}}
{{- range .Values.policySources -}}
{{- $path := printf "/etc/gateway/sources/%s" .name -}}
{{- with get . "path" -}}{{- $path = printf "%s/%s" $path . -}}{{- end -}}
{{- if get . "owner" -}}
{{- $paths = append $paths (merge (dict "path" $path) (pick . "owner" "concerns")) -}}
{{- else if get . "concerns" -}}
{{- fail (printf "policySources: %s has concerns and no owner" .name) -}}
{{- else -}}
{{- $paths = append $paths $path -}}
{{- end -}}
{{- end -}}
{{- if not $paths -}}
{{- fail "policies: must have a file, or policySources a source: without one the gateway has nothing to enforce" -}}
{{- end -}}
{{- toJson $paths -}}
{{- end }}

{{- /* How many seconds the Pod gets to end. */ -}}
{{- define "gateway.gracePeriod" -}}
{{- $c := .Values.configuration -}}
{{- $requests := maxf (dig "shutdownDeadlineSeconds" 30 $c) (dig "upgradeDrainSeconds" 0 $c) -}}
{{- $hook := dig "preStop" "sleep" "seconds" 0 .Values.lifecycle -}}
{{- $need := addf (dig "drainSeconds" 10 $c) $requests $hook | ceil | int -}}
{{- $set := int .Values.terminationGracePeriodSeconds -}}
{{- if not $set -}}
{{- add $need 5 -}}
{{- else if le $set $need -}}
{{- fail (printf "terminationGracePeriodSeconds: %d is too short: a preStop hook, configuration.drainSeconds, and the longer of shutdownDeadlineSeconds and upgradeDrainSeconds take %d seconds; set more, or 0, which derives it" $set $need) -}}
{{- else -}}
{{- $set -}}
{{- end -}}
{{- end }}

{{- define "gateway.hasTest" -}}
{{- if and .Values.helmTest.enabled (ne .Values.mode "Sidecar") }}true{{ end -}}
{{- end }}

{{- /* The host by which `helm test` asks the admin listener. */ -}}
{{- define "gateway.testHost" -}}
{{ include "gateway.fullname" . }}-test.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "gateway.servicePort" -}}
{{ .Values.service.port | default (ternary 443 80 (not (empty .Values.tls.secretName))) }}
{{- end }}

{{- /* Of the Pod of `helm test`, which no Service or budget of the gateway selects. */ -}}
{{- define "gateway.testLabels" -}}
app.kubernetes.io/name: {{ include "gateway.name" . }}-test
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* The account of the Pods; empty if they have none. */ -}}
{{- define "gateway.serviceAccount" -}}
{{- if .Values.serviceAccount.name -}}
{{ .Values.serviceAccount.name }}
{{- else if or (eq .Values.mode "APIServer") .Values.controller.enabled -}}
{{ include "gateway.fullname" . }}
{{- end -}}
{{- end }}

{{- /* What a controller reads and writes in namespaces, as rules of a role. */ -}}
{{- define "gateway.watchRules" -}}
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways, listenersets, httproutes, grpcroutes, tlsroutes, tcproutes, udproutes, referencegrants, backendtlspolicies]
  verbs: [list, watch]
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways/status, listenersets/status, httproutes/status, grpcroutes/status, tlsroutes/status, tcproutes/status, udproutes/status, backendtlspolicies/status]
  verbs: [patch]
- apiGroups: [networking.k8s.io]
  resources: [ingresses]
  verbs: [list, watch]
- apiGroups: [networking.k8s.io]
  resources: [ingresses/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [services, secrets, configmaps]
  verbs: [list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
{{- end }}
