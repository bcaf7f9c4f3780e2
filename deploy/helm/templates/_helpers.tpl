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
{{ include "gateway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "gateway.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
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

{{- /* The ConfigMap with the authorities of client certificates; empty if no client is known by one. */ -}}
{{- define "gateway.clientCA" -}}
{{- if and (eq .Values.mode "APIServer") .Values.tls.secretName -}}
{{ .Values.tls.clientCAConfigMap }}
{{- end -}}
{{- end }}

{{- /* The settings that need a restart, as in the table of docs/configuration.md. */ -}}
{{- define "gateway.needsRestart" -}}
{{- $all := include "gateway.configuration" . | fromYaml -}}
{{- $limits := default dict (get $all "limits") -}}
{{- $telemetry := default dict (get $all "telemetry") -}}
{{- $log := default dict (get $telemetry "log") -}}
{{- toYaml (list
  (pick $all "listen" "tls" "admin" "bundles" "redis")
  (pick $limits "bodiesInFlightBytes" "heavyRequests" "connections")
  (pick $log "format")
  (pick $telemetry "audit" "decisionLogs" "tracing" "metrics")
) -}}
{{- end -}}

{{- /* The configuration file: what the chart decides wins over the values. */ -}}
{{- define "gateway.configuration" -}}
{{- $fixed := dict "apiVersion" "admission-gateway.io/v1alpha1" "kind" "GatewayConfiguration" "listen" "0.0.0.0:8080" -}}
{{- $_ := set $fixed "admin" (dict "listen" "0.0.0.0:8081") -}}
{{- $_ := set $fixed "policies" (list "/etc/gateway/policies") -}}
{{- if .Values.tls.secretName -}}
{{- $_ := set $fixed "tls" (dict "certFile" "/etc/gateway/tls/tls.crt" "keyFile" "/etc/gateway/tls/tls.key") -}}
{{- end -}}
{{- $byCertificate := include "gateway.clientCA" . -}}
{{- if $byCertificate -}}
{{- $_ := set $fixed.tls "clientCAFile" "/etc/gateway/client-ca/ca.crt" -}}
{{- end -}}
{{- if eq .Values.mode "Ingress" -}}
{{- $_ := set $fixed "replicas" (.Values.autoscaling.enabled | ternary .Values.autoscaling.maxReplicas .Values.replicas) -}}
{{- end -}}
{{- if eq .Values.mode "APIServer" -}}
{{- if .Values.configuration.upstreams -}}
{{- fail "mode APIServer stands before the cluster's own API server: configuration.upstreams must be empty" -}}
{{- end -}}
{{- else if not .Values.configuration.upstreams -}}
{{- fail (printf "mode %s needs configuration.upstreams: the backends with their endpoints" .Values.mode) -}}
{{- end -}}
{{- if and (eq .Values.mode "APIServer") (not (hasKey .Values.configuration "identity")) -}}
{{- $authenticators := list (dict "tokenReview" (dict "upstream" "kubernetes")) -}}
{{- if $byCertificate -}}
{{- $authenticators = append $authenticators (dict "clientCertificate" dict) -}}
{{- end -}}
{{- $_ := set $fixed "identity" (dict "authenticators" $authenticators "anonymous" "Allow") -}}
{{- end -}}
{{- $own := empty .Values.configuration.upstreams | not | ternary .Values.configuration (omit .Values.configuration "upstreams") -}}
{{- toYaml (mergeOverwrite (deepCopy $own) $fixed) -}}
{{- end }}

{{- define "gateway.args" -}}
args:
  - serve
  - --config=/etc/gateway/config/gateway.yaml
{{- end }}

{{- define "gateway.probe" -}}
httpGet:
  path: {{ .path }}
  port: {{ .port }}
  {{- if dig "admin" "tls" false .root.Values.configuration }}
  scheme: HTTPS
  {{- end }}
{{- end }}
