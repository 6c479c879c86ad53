{{/* The controller's command line. Kubernetes takes $$ for $ in it. */}}
{{- define "mpa.args" -}}
{{- $v := .Values -}}
- --listen=:{{ $v.metrics.port }}
- --per-mpa-metrics={{ $v.metrics.perMpa }}
- --confine={{ ternary "must" "false" $v.confine }}
- --dashboard={{ ternary "kubernetes" "off" (eq (include "mpa.dashboard" .) "true") }}
- --lease-name={{ include "mpa.fullname" . }}
- --lease-namespace={{ .Release.Namespace }}
- --shards={{ $v.shards }}
{{- range $v.watchNamespaces }}
- --namespace={{ . }}
{{- end }}
- {{ printf "--prometheus-url=%s" $v.prometheus.url | quote }}
- --prometheus-timeout={{ $v.prometheus.timeout }}
{{- if eq $v.prometheus.auth.type "bearer" }}
- --prometheus-token-file=/etc/prometheus-auth/token
{{- else if eq $v.prometheus.auth.type "basic" }}
- --prometheus-user-file=/etc/prometheus-auth/username
- --prometheus-password-file=/etc/prometheus-auth/password
{{- end }}
{{- with $v.prometheus.tls }}
{{- if or .ca.secretName .ca.configMapName }}
- --prometheus-ca-file=/etc/prometheus-ca/ca.crt
{{- end }}
{{- if .client.secretName }}
- --prometheus-cert-file=/etc/prometheus-client/tls.crt
- --prometheus-key-file=/etc/prometheus-client/tls.key
{{- end }}
{{- if .insecure }}
- --prometheus-insecure
{{- end }}
{{- end }}
{{- range $name := list "latency" "cpu" "throttled" "memory" "proxy" "openwhisk" }}
{{- with index $v.queries $name }}
- {{ printf "--query-%s=%s" $name . | replace "$" "$$" | quote }}
{{- end }}
{{- end }}
- --own-queries={{ $v.queries.own }}
- --interval={{ $v.interval }}
- --window={{ $v.window }}
- --status-interval={{ $v.statusInterval }}
- --history={{ $v.history }}
- --default-cpu-utilization={{ $v.defaultCpuUtilization }}
- --resize-cooldown={{ $v.resize.cooldown }}
- --resize-up-factor={{ $v.resize.upFactor }}
- --resize-down-factor={{ $v.resize.downFactor }}
- --resize-threshold={{ $v.resize.threshold }}
{{- if $v.journal.enabled }}
- --journal=/var/lib/faasrl-mpa/journal
- --journal-max={{ $v.journal.maxMib }}
{{- end }}
{{- with $v.policy }}
- {{ printf "--policy=%s" . | quote }}
{{- end }}
- --learn={{ $v.learn.enabled }}
- --learn-after={{ $v.learn.after }}
- --learn-history={{ $v.learn.history }}
- --learn-effort={{ $v.learn.effort }}
- --writes-per-second={{ $v.writes.perSecond }}
- --write-burst={{ $v.writes.burst }}
- --log-level={{ $v.log.level }}
- --log-format={{ $v.log.format }}
{{- range $v.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}
