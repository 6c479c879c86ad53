{{- define "mpa.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "mpa.fullname" -}}
{{- $name := include "mpa.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "mpa.selector" -}}
app.kubernetes.io/name: {{ include "mpa.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "mpa.labels" -}}
{{ include "mpa.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "mpa.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "mpa.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.create is false: serviceAccount.name must name an account" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* What values.schema.json cannot say in words that help. */}}
{{- define "mpa.check" -}}
{{- if and (eq .Values.rbac.scope "namespaced") (not .Values.watchNamespaces) -}}
{{- fail "rbac.scope is namespaced: watchNamespaces must name the namespaces" -}}
{{- end -}}
{{- with .Values.prometheus -}}
{{- if and (ne .auth.type "none") (not .auth.secretName) -}}
{{- fail (printf "prometheus.auth.type is %s: prometheus.auth.secretName must name a Secret" .auth.type) -}}
{{- end -}}
{{- if and .tls.ca.secretName .tls.ca.configMapName -}}
{{- fail "prometheus.tls.ca: secretName or configMapName, not both" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The names of the leases: one, and with shards one for each and one for each replica that shares them. */}}
{{- define "mpa.leases" -}}
{{- $name := include "mpa.fullname" . -}}
{{- $name -}}
{{- if gt (int .Values.shards) 1 -}}
{{- range $kind := list "shard" "member" -}}
{{- range $i := until (int $.Values.shards) }}, {{ $name }}-{{ $kind }}-{{ $i }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The last word on what the controller may do in the namespaces that it follows. */}}
{{/* Not empty where the dashboard is served: what it asks the API server about is cluster-wide. */}}
{{- define "mpa.dashboard" -}}
{{- if and .Values.dashboard.enabled (eq .Values.rbac.scope "cluster") }}true{{ end -}}
{{- end -}}

{{- define "mpa.rules" -}}
# what it is asked for, and what it answers
- apiGroups: [autoscaling.faasrl.io]
  resources: [multidimpodautoscalers]
  verbs: [list, watch]
- apiGroups: [autoscaling.faasrl.io]
  resources: [multidimpodautoscalers/status]
  verbs: [patch]
# what it sees
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [deployments, statefulsets, replicasets]
  verbs: [list, watch]
# who else scales
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [list, watch]
- apiGroups: [keda.sh]
  resources: [scaledobjects]
  verbs: [list, watch]
- apiGroups: [autoscaling.k8s.io]
  resources: [verticalpodautoscalers]
  verbs: [list, watch]
# what it changes
- apiGroups: [apps]
  resources: [deployments/scale, statefulsets/scale, replicasets/scale]
  verbs: [patch]
- apiGroups: [""]
  resources: [pods/resize]
  verbs: [patch]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- if include "mpa.dashboard" . }}
# who may see the dashboard
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
{{- if .Values.rbac.knative }}
# Knative: where traffic goes, and its autoscaler's bounds
- apiGroups: [serving.knative.dev]
  resources: [services, configurations, revisions]
  verbs: [list, watch]
- apiGroups: [autoscaling.internal.knative.dev]
  resources: [podautoscalers]
  verbs: [list, watch, patch]
# and, where an MPA is to scale in its place, the class, and what belongs to Revisions of that class
- apiGroups: [serving.knative.dev]
  resources: [services, configurations]
  verbs: [patch]
- apiGroups: [autoscaling.internal.knative.dev]
  resources: [podautoscalers/status]
  verbs: [patch]
- apiGroups: [networking.internal.knative.dev]
  resources: [serverlessservices]
  verbs: [list, watch, create, patch]
{{- end }}
{{- range .Values.rbac.scaleTargets }}
- apiGroups: [{{ .group | quote }}]
  resources: [{{ .resource }}]
  verbs: [list, watch]
- apiGroups: [{{ .group | quote }}]
  resources: [{{ .resource }}/scale]
  verbs: [get, patch]
{{- end }}
{{- end -}}

{{- define "mpa.subjects" -}}
- kind: ServiceAccount
  name: {{ include "mpa.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{/* The port that NetworkPolicy must let through for prometheus.url. */}}
{{- define "mpa.prometheusPort" -}}
{{- $url := urlParse .Values.prometheus.url -}}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" -}}
{{- default (ternary "443" "80" (eq $url.scheme "https")) $port -}}
{{- end -}}

{{/* One port list of a NetworkPolicy. */}}
{{- define "mpa.tcpPorts" -}}
{{- range . }}
- protocol: TCP
  port: {{ . }}
{{- end }}
{{- end -}}
