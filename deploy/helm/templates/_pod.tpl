{{- /*
What a container of the gateway has in a Pod of its own and beside an API. Names of ports and volumes begin with PREFIX there,
as the Pod is another's. It takes root, prefix, and started, the path that answers once the gateway has started.
*/ -}}
{{- define "gateway.container" -}}
{{- $root := .root -}}
{{- $port := print .prefix "admin" -}}
name: gateway
image: {{ include "gateway.image" $root }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
args:
  - serve
  - --config=/etc/gateway/config/gateway.yaml
  {{- with $root.Values.extraArgs }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- range $key := list "env" "envFrom" "lifecycle" }}
{{- with get $root.Values $key }}
{{ toYaml (dict $key .) }}
{{- end }}
{{- end }}
ports:
  {{- if $root.Values.controller.enabled }}
  {{- range $root.Values.controller.ports }}
  - containerPort: {{ . }}
  {{- end }}
  {{- end }}
  - name: {{ .prefix | trimSuffix "-" | default "http" }}
    containerPort: 8080
  - name: {{ $port }}
    containerPort: 8081
  {{- range include "gateway.listeners" $root | fromJsonArray }}
  - containerPort: {{ .port }}
  {{- end }}
{{- $starts := add 60 (div (int $root.Values.policyObjects) 20) | int }}
{{- $probes := dict
  "startupProbe" (list .started (dict "periodSeconds" 1 "failureThreshold" $starts) $root.Values.probes.startup)
  "readinessProbe" (list "/readyz" (dict "periodSeconds" 2 "failureThreshold" 1) $root.Values.probes.readiness)
  "livenessProbe" (list "/livez" (dict "periodSeconds" 10) $root.Values.probes.liveness)
}}
{{- range $name, $probe := $probes }}
{{- $get := dict "path" (index $probe 0) "port" $port }}
{{- if $root.Values.admin.tls.secretName }}{{- $_ := set $get "scheme" "HTTPS" }}{{- end }}
{{ toYaml (dict $name (mergeOverwrite (dict "httpGet" $get) (index $probe 1) (index $probe 2))) }}
{{- end }}
resources:
  {{- include "gateway.resources" $root | nindent 2 }}
volumeMounts:
  {{- range (include "gateway.ownVolumes" $root | fromJsonArray) }}
  # A folder, not a subPath: only folders are updated while the Pod runs.
  - name: {{ $.prefix }}{{ .volume.name }}
    mountPath: {{ .path }}
    readOnly: true
  {{- end }}
  {{- with $root.Values.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "gateway.volumes" -}}
{{- range (include "gateway.ownVolumes" .root | fromJsonArray) }}
- {{ toYaml (set .volume "name" (print $.prefix .volume.name)) | nindent 2 | trim }}
{{- end }}
{{- with .root.Values.volumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The volumes that the chart has, and where each is mounted, as JSON. */ -}}
{{- define "gateway.ownVolumes" -}}
{{- $full := include "gateway.fullname" . -}}
{{- $all := list (dict "path" "/etc/gateway/config" "volume" (dict "name" "config" "configMap" (dict "name" (.Values.existingConfigMap | default (print $full "-config"))))) -}}
{{- if .Values.policies -}}
{{- $all = append $all (dict "path" "/etc/gateway/policies" "volume" (dict "name" "policies" "configMap" (dict "name" (print $full "-policies")))) -}}
{{- end -}}
{{- range .Values.policySources -}}
{{- if and (hasKey .volume "image") (semverCompare "<1.31.0-0" $.Capabilities.KubeVersion.Version) -}}
{{- fail (printf "policySources: %s is an image, which Kubernetes mounts since 1.31; this is %s" .name $.Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- $all = append $all (dict "path" (print "/etc/gateway/sources/" .name) "volume" (merge (dict "name" (print "source-" .name)) .volume)) -}}
{{- end -}}
{{- range include "gateway.listeners" . | fromJsonArray -}}
{{- range .volumes -}}
{{- $all = append $all (dict "path" (print "/etc/gateway/" .name) "volume" .) -}}
{{- end -}}
{{- end -}}
{{- range list (include "gateway.public" .) (include "gateway.admin" .) -}}
{{- range get (fromJson .) "volumes" | default list -}}
{{- $all = append $all (dict "path" (print "/etc/gateway/" .name) "volume" .) -}}
{{- end -}}
{{- end -}}
{{- with .Values.admin.tokenSecret.name -}}
{{- $all = append $all (dict "path" "/etc/gateway/admin-token" "volume" (dict "name" "admin-token" "secret" (dict "secretName" .))) -}}
{{- end -}}
{{- toJson $all -}}
{{- end }}
