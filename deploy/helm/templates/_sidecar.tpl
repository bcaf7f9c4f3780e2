{{- /*
The gateway as a sidecar, for the Pods of another chart that has this one as a dependency with the name gateway. It starts
before the API and ends after it, as Kubernetes 1.29 and later does with such containers:

  initContainers:
    {{- include "gateway.sidecar" .Subcharts.gateway | nindent 8 }}
  volumes:
    {{- include "gateway.sidecar.volumes" .Subcharts.gateway | nindent 8 }}
*/ -}}
{{- define "gateway.sidecar" -}}
- name: gateway
  restartPolicy: Always
  image: {{ include "gateway.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  {{- include "gateway.args" . | nindent 2 }}
  {{- with .Values.env }}
  env:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  ports:
    - name: gateway
      containerPort: 8080
    - name: gateway-admin
      containerPort: 8081
  # The API starts after this, so it must not wait for what needs the API.
  startupProbe:
    {{- include "gateway.probe" (dict "path" "/livez" "port" "gateway-admin" "root" .) | nindent 4 }}
    periodSeconds: 1
    failureThreshold: 30
  readinessProbe:
    {{- include "gateway.probe" (dict "path" "/readyz" "port" "gateway-admin" "root" .) | nindent 4 }}
    periodSeconds: 2
    failureThreshold: 1
  livenessProbe:
    {{- include "gateway.probe" (dict "path" "/livez" "port" "gateway-admin" "root" .) | nindent 4 }}
    periodSeconds: 10
  resources:
    {{- include "gateway.resources" . | nindent 4 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    seccompProfile:
      type: RuntimeDefault
    capabilities:
      drop:
        - ALL
  volumeMounts:
    - name: gateway-config
      mountPath: /etc/gateway/config
      readOnly: true
    - name: gateway-policies
      mountPath: /etc/gateway/policies
      readOnly: true
    {{- if .Values.tls.secretName }}
    - name: gateway-tls
      mountPath: /etc/gateway/tls
      readOnly: true
    {{- end }}
    {{- with .Values.volumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{- define "gateway.sidecar.volumes" -}}
- name: gateway-config
  configMap:
    name: {{ include "gateway.fullname" . }}-config
- name: gateway-policies
  configMap:
    name: {{ include "gateway.fullname" . }}-policies
{{- if .Values.tls.secretName }}
- name: gateway-tls
  secret:
    secretName: {{ .Values.tls.secretName }}
{{- end }}
{{- with .Values.volumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
