{{- /*
The gateway as a sidecar, for the Pods of another chart that has this one as a dependency with the name gateway. It starts
before the API and ends after it, as Kubernetes 1.29 and later does with such containers:

  initContainers:
    {{- include "gateway.sidecar" .Subcharts.gateway | nindent 8 }}
  volumes:
    {{- include "gateway.sidecar.volumes" .Subcharts.gateway | nindent 8 }}
*/ -}}
{{- define "gateway.sidecar" -}}
{{- with .Values.initContainers }}
{{- toYaml . }}
{{ end -}}
# The API starts after this, so it must not wait for what needs the API.
- restartPolicy: Always
  {{- include "gateway.container" (dict "root" . "prefix" "gateway-" "started" "/livez") | nindent 2 }}
  securityContext:
    {{- toYaml (merge (dict) .Values.securityContext (pick .Values.podSecurityContext "runAsNonRoot" "runAsUser" "runAsGroup" "seccompProfile" "seLinuxOptions" "appArmorProfile" "windowsOptions")) | nindent 4 }}
{{- end }}

{{- define "gateway.sidecar.volumes" -}}
{{- include "gateway.volumes" (dict "root" . "prefix" "gateway-") | trim }}
{{- end }}
