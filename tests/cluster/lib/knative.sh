# shellcheck shell=bash
# Knative Serving on the real node, and the cluster DNS that its parts find each other by.

knative_up() {
  local from image space
  lock
  is_up || die "the cluster is not up: tests/cluster/cluster up"
  [[ $(node_kind) == real ]] || die "Knative's pods need a real node, and the nodes of this cluster are fakes"
  # Once it is there its webhook may only be away for a while, as after a restart of the API server.
  if knative_takes_services >/dev/null 2>&1 ||
    { [[ -d $run/knative ]] && within 60 knative_takes_services >/dev/null 2>&1; }; then
    echo "Knative is up already"
    return
  fi
  from=$("$here/build" knative)
  for image in "$from"/*.tar; do load_image "$image"; done
  say "Knative's images are there"
  mkdir -p "$run/knative"
  cp "$from/serving.yaml" "$run/knative"
  cluster_dns >"$run/knative/dns.yaml"
  knative_settings >"$run/knative/kustomization.yaml"
  kubectl_admin kustomize "$run/knative" | kubectl_admin apply --server-side --force-conflicts -f - >>"$run/logs/kubectl.log"
  for space in kube-system knative-serving; do
    kubectl_admin -n "$space" wait --for=condition=Available deployment --all --timeout=180s >>"$run/logs/kubectl.log"
  done
  within 60 knative_takes_services >/dev/null 2>&1 || die "Knative does not take a Service: $(knative_takes_services 2>&1)"
  say "Knative ready"
}

# A webhook has its say in it, and has to have told the API server its certificate before.
knative_takes_services() {
  kubectl_admin create --dry-run=server -f - <<YAML
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: try, namespace: default}
spec: {template: {spec: {containers: [{image: dev.local/try:1}]}}}
YAML
}

# Small requests and no limits, as two cores run everything else, too. Nobody serves the class of ingress: Services
# never get ready, but Revisions do, and take requests at their own Services. Images of the tests are in no registry
# where a tag could be looked up.
knative_settings() {
  cat <<YAML
resources: [serving.yaml, dns.yaml]
patches:
- target: {kind: Deployment, namespace: knative-serving}
  patch: |
    - {op: add, path: /spec/template/spec/dnsPolicy, value: None}
    - {op: add, path: /spec/template/spec/dnsConfig, value: {nameservers: [$SERVICE_DNS_IP]}}
    - {op: add, path: /spec/template/spec/terminationGracePeriodSeconds, value: 5}
    - {op: replace, path: /spec/template/spec/containers/0/resources, value: {requests: {cpu: 50m, memory: 64Mi}}}
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: activator, namespace: knative-serving}
    spec:
      template:
        metadata:
          annotations: {prometheus.io/scrape: "true", prometheus.io/port: "9090"}
- patch: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: config-network, namespace: knative-serving}
    data: {ingress-class: nobody.ingress.networking.knative.dev}
- patch: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: config-deployment, namespace: knative-serving}
    data: {registries-skipping-tag-resolving: "dev.local,index.docker.io"}
- patch: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: config-observability, namespace: knative-serving}
    data:
      metrics-protocol: prometheus
      request-metrics-protocol: prometheus
      request-metrics-endpoint: ":9091"
YAML
}

cluster_dns() {
  cat <<YAML
apiVersion: v1
kind: ServiceAccount
metadata: {name: coredns, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: coredns}
rules:
- {apiGroups: [""], resources: [namespaces, pods, services], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: coredns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: coredns}
subjects: [{kind: ServiceAccount, name: coredns, namespace: kube-system}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:1053 {
      errors
      ready
      kubernetes cluster.local
    }
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns, namespace: kube-system}
spec:
  selector: {matchLabels: {app: coredns}}
  template:
    metadata: {labels: {app: coredns}}
    spec:
      serviceAccountName: coredns
      dnsPolicy: Default
      containers:
      - name: coredns
        image: dev.local/coredns:1
        args: [-conf, /etc/coredns/Corefile]
        readinessProbe: {httpGet: {path: /ready, port: 8181}, periodSeconds: 1}
        resources: {requests: {cpu: 20m, memory: 64Mi}}
        volumeMounts: [{name: config, mountPath: /etc/coredns}]
      volumes: [{name: config, configMap: {name: coredns}}]
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec:
  clusterIP: $SERVICE_DNS_IP
  selector: {app: coredns}
  ports:
  - {name: dns, port: 53, targetPort: 1053, protocol: UDP}
  - {name: dns-tcp, port: 53, targetPort: 1053, protocol: TCP}
YAML
}
