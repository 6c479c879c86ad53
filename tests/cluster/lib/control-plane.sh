# shellcheck shell=bash
# The control plane, Prometheus and kwok: for each component what starts it
# (start_NAME) and, where others wait for it, how it is seen to be ready
# (ready_NAME). `restart` uses the same two.

# The API server and Prometheus are for pods too where pods are real; the
# firewall of lib/node.sh keeps others out.
listen_ip() { if [[ $(node_kind) == real ]]; then echo 0.0.0.0; else echo 127.0.0.1; fi; }

http() { curl -fsS --max-time 2 -o /dev/null "$@"; }
https() { http --cacert "$run/pki/ca.crt" --cert "$run/pki/admin.crt" --key "$run/pki/admin.key" "$@"; }
kubectl_admin() { kubectl --kubeconfig="$kubeconfig" "$@"; }

start_etcd() {
  local client=http://127.0.0.1:$PORT_ETCD peer=http://127.0.0.1:$PORT_ETCD_PEER
  start etcd etcd --data-dir="$run/etcd" --unsafe-no-fsync --logger=zap --log-level=warn \
    --listen-client-urls="$client" --advertise-client-urls="$client" \
    --listen-peer-urls="$peer" --initial-advertise-peer-urls="$peer" --initial-cluster="default=$peer"
}
ready_etcd() { ready etcd 30 http "http://127.0.0.1:$PORT_ETCD/health"; }

start_kube-apiserver() {
  start kube-apiserver kube-apiserver \
    --etcd-servers="http://127.0.0.1:$PORT_ETCD" \
    --bind-address="$(listen_ip)" --advertise-address="$NODE_IP" --secure-port="$PORT_API" \
    --tls-cert-file="$run/pki/apiserver.crt" --tls-private-key-file="$run/pki/apiserver.key" \
    --client-ca-file="$run/pki/ca.crt" --authorization-mode=Node,RBAC --allow-privileged \
    --service-account-issuer=https://kubernetes.default.svc \
    --service-account-key-file="$run/pki/sa.pub" --service-account-signing-key-file="$run/pki/sa.key" \
    --service-cluster-ip-range="$SERVICE_RANGE" \
    --kubelet-certificate-authority="$run/pki/ca.crt" \
    --kubelet-client-certificate="$run/pki/kubelet-client.crt" --kubelet-client-key="$run/pki/kubelet-client.key" \
    --kubelet-preferred-address-types=InternalIP \
    --requestheader-client-ca-file="$run/pki/ca.crt" --requestheader-allowed-names=front-proxy \
    --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
    --requestheader-extra-headers-prefix=X-Remote-Extra- \
    --proxy-client-cert-file="$run/pki/front-proxy.crt" --proxy-client-key-file="$run/pki/front-proxy.key" \
    --shutdown-watch-termination-grace-period=1s \
    --audit-policy-file="$here/audit-policy.yaml" --audit-log-path="$run/logs/audit.log"
}
ready_kube-apiserver() { ready kube-apiserver 60 https "https://127.0.0.1:$PORT_API/readyz"; }

start_kube-controller-manager() {
  local config=$run/pki/kube-controller-manager.kubeconfig more
  read -ra more <<<"${FAASRL_CONTROLLER_MANAGER_FLAGS:-}"
  start kube-controller-manager kube-controller-manager \
    --kubeconfig="$config" --authentication-kubeconfig="$config" --authorization-kubeconfig="$config" \
    --bind-address=127.0.0.1 --secure-port="$PORT_CONTROLLER_MANAGER" --leader-elect=false \
    --use-service-account-credentials --service-account-private-key-file="$run/pki/sa.key" \
    --root-ca-file="$run/pki/ca.crt" \
    --cluster-signing-cert-file="$run/pki/ca.crt" --cluster-signing-key-file="$run/pki/ca.key" \
    --kube-api-qps=200 --kube-api-burst=400 "${more[@]}"
}
ready_kube-controller-manager() {
  ready kube-controller-manager 30 http -k "https://127.0.0.1:$PORT_CONTROLLER_MANAGER/healthz"
}

start_kube-scheduler() {
  local config=$run/pki/kube-scheduler.kubeconfig
  start kube-scheduler kube-scheduler \
    --kubeconfig="$config" --authentication-kubeconfig="$config" --authorization-kubeconfig="$config" \
    --bind-address=127.0.0.1 --secure-port="$PORT_SCHEDULER" --leader-elect=false \
    --kube-api-qps=200 --kube-api-burst=400
}
ready_kube-scheduler() { ready kube-scheduler 30 http -k "https://127.0.0.1:$PORT_SCHEDULER/healthz"; }

# Debian's Prometheus has no Kubernetes service discovery: pod-targets, of
# kubebox, writes down which pods are to be scraped.
start_pod-targets() {
  start pod-targets pod-targets --kubeconfig="$run/pki/prometheus.kubeconfig" --node="$NODE" --out="$run/targets.json"
}
ready_pod-targets() { ready pod-targets 30 test -e "$run/targets.json"; }

# Every 2 s, so that tests see a load within seconds.
start_prometheus() {
  cat >"$run/prometheus.yaml" <<YAML
global: {scrape_interval: 2s, scrape_timeout: 2s}
scrape_configs:
- job_name: kubelet-cadvisor
  scheme: https
  metrics_path: /metrics/cadvisor
  tls_config: {ca_file: $run/pki/ca.crt, cert_file: $run/pki/prometheus.crt, key_file: $run/pki/prometheus.key}
  honor_labels: true
  static_configs:
  - targets: [$NODE_IP:$PORT_KUBELET]
    labels: {node: $NODE}
  metric_relabel_configs:
  - source_labels: [__name__]
    regex: container_(cpu_usage_seconds_total|cpu_cfs_(throttled_)?periods_total|memory_working_set_bytes|spec_cpu_(quota|period))
    action: keep
- job_name: pods
  file_sd_configs:
  - files: [$run/targets.json]
    refresh_interval: 10s # a change is seen at once all the same
YAML
  start prometheus prometheus --config.file="$run/prometheus.yaml" --storage.tsdb.path="$run/prometheus" \
    --storage.tsdb.retention.time=1d --web.listen-address="$(listen_ip):$PORT_PROMETHEUS" \
    --web.enable-lifecycle --web.enable-admin-api
}
ready_prometheus() { ready prometheus 30 http "http://127.0.0.1:$PORT_PROMETHEUS/-/ready"; }

start_kwok() {
  start kwok "$("$here/build" kwok)" --kubeconfig="$run/pki/kwok.kubeconfig" \
    --manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake --manage-all-nodes=false \
    --node-ip="$NODE_IP" --cidr="$FAKE_POD_RANGE" \
    --server-address="127.0.0.1:$PORT_KWOK"
}
ready_kwok() { ready kwok 30 http "http://127.0.0.1:$PORT_KWOK/healthz"; }

# fake_nodes N: adds N nodes that kwok pretends to run. Where there is a real
# node a taint keeps ordinary pods off them.
fake_nodes() {
  local count=$1 have taints='[]' i
  alive kwok || start_kwok
  ready_kwok
  if [[ $(node_kind) == real ]]; then
    taints='[{key: kwok.x-k8s.io/node, value: fake, effect: NoSchedule}]'
  fi
  have=$(kubectl_admin get nodes -l type=kwok --no-headers 2>/dev/null | wc -l)
  for ((i = have; i < have + count; i++)); do
    cat <<YAML
---
apiVersion: v1
kind: Node
metadata:
  name: kwok-$i
  annotations: {kwok.x-k8s.io/node: fake}
  labels: {type: kwok, kubernetes.io/hostname: kwok-$i, kubernetes.io/os: linux}
spec: {taints: $taints}
status:
  capacity: &size {cpu: "32", memory: 256Gi, pods: "1000"}
  allocatable: *size
YAML
  done | kubectl_admin apply -f - >/dev/null
  kubectl_admin wait --for=condition=Ready nodes -l type=kwok --timeout=60s >/dev/null
}
