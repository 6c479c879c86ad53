{{/* What the controller reads of Prometheus' credentials, each under the name that _args.tpl uses, and its journal. */}}
{{- define "mpa.hasVolumes" -}}
{{- if .Values.journal.enabled -}}
true
{{- end -}}
{{- with .Values.prometheus -}}
{{- if or (ne .auth.type "none") .tls.ca.secretName .tls.ca.configMapName .tls.client.secretName -}}
true
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "mpa.volumeMounts" -}}
{{- if include "mpa.hasVolumes" . -}}
volumeMounts:
{{- if .Values.journal.enabled }}
- name: journal
  mountPath: /var/lib/faasrl-mpa
{{- end }}
{{- with .Values.prometheus }}
{{- if ne .auth.type "none" }}
- name: prometheus-auth
  mountPath: /etc/prometheus-auth
  readOnly: true
{{- end }}
{{- if or .tls.ca.secretName .tls.ca.configMapName }}
- name: prometheus-ca
  mountPath: /etc/prometheus-ca
  readOnly: true
{{- end }}
{{- if .tls.client.secretName }}
- name: prometheus-client
  mountPath: /etc/prometheus-client
  readOnly: true
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "mpa.volumes" -}}
{{- if include "mpa.hasVolumes" . -}}
volumes:
{{- if .Values.journal.enabled }}
- name: journal
  emptyDir:
    sizeLimit: {{ add 16 (mul 2 .Values.journal.maxMib) }}Mi
{{- end }}
{{- with .Values.prometheus }}
{{- if ne .auth.type "none" }}
- name: prometheus-auth
  secret:
    secretName: {{ .auth.secretName }}
    defaultMode: 0440
    items:
    {{- if eq .auth.type "bearer" }}
    - {key: {{ .auth.tokenKey }}, path: token}
    {{- else }}
    - {key: {{ .auth.usernameKey }}, path: username}
    - {key: {{ .auth.passwordKey }}, path: password}
    {{- end }}
{{- end }}
{{- with .tls.ca }}
{{- if .secretName }}
- name: prometheus-ca
  secret:
    secretName: {{ .secretName }}
    items:
    - {key: {{ .key }}, path: ca.crt}
{{- else if .configMapName }}
- name: prometheus-ca
  configMap:
    name: {{ .configMapName }}
    items:
    - {key: {{ .key }}, path: ca.crt}
{{- end }}
{{- end }}
{{- with .tls.client }}
{{- if .secretName }}
- name: prometheus-client
  secret:
    secretName: {{ .secretName }}
    defaultMode: 0440
    items:
    - {key: {{ .certKey }}, path: tls.crt}
    - {key: {{ .keyKey }}, path: tls.key}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
