# shellcheck shell=bash
# The real node: containerd, kubelet and kube-proxy on this machine; root only.

node_kind() { cat "$run/node" 2>/dev/null || echo none; }
ctr_k8s() { ctr -a "$run/containerd/sock" -n k8s.io "$@"; }

RULE=(-m comment --comment faasrl-test-cluster)
# What is let in and through, as "CHAIN RULE": the pods to each other even if
# the machine forwards nothing else, and to our ports only them and this machine.
firewall_rules() {
  echo "FORWARD -s $POD_RANGE -j ACCEPT"
  echo "FORWARD -d $POD_RANGE -j ACCEPT"
  echo "INPUT -p tcp -m multiport --dports $PORT_API,$PORT_PROMETHEUS ! -i lo -j DROP"
  echo "INPUT -p tcp -m multiport --dports $PORT_API,$PORT_PROMETHEUS -s $POD_RANGE -j ACCEPT" # before the one above
}

prepare_node() {
  local chain rule dir
  [[ ${#run} -le 70 ]] || die "the path $run is too long for the sockets below it: set FAASRL_CLUSTER_DIR to a shorter one"
  echo "$run" >>"$cache/nodes"
  ip addr replace "$NODE_IP/32" dev lo
  cat /proc/sys/net/ipv4/ip_forward >"$run/ip_forward.before"
  echo 1 >/proc/sys/net/ipv4/ip_forward
  firewall_rules | while read -r chain rule; do
    # shellcheck disable=SC2086
    iptables -w -I "$chain" $rule "${RULE[@]}"
  done
  while read -r dir; do mkdir -p "$dir/$CGROUP"; done < <(cgroup_roots)
}

# Where cgroups are mounted: one place with v2, one for each controller with v1.
cgroup_roots() { awk '$3 ~ /^cgroup2?$/ {print $2}' /proc/mounts; }

start_containerd() {
  mkdir -p "$run/containerd" "$run/cni"
  cat >"$run/containerd/config.toml" <<TOML
version = 2
root = "$run/containerd/root"
state = "$run/containerd/state"
[grpc]
  address = "$run/containerd/sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/local/pause:1"
  # Inside a virtual machine or container even root may not lower it: runc
  # would fail with "can't get final child's PID from pipe: EOF".
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  disable_tcp_service = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$run/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.internal.v1.opt"]
  path = "$run/containerd/opt"
TOML
  # Pods hang off the host one by one (ptp): all their traffic is routed, so
  # service addresses work between them without a bridge's netfilter module.
  # They have routes to pods, the node and services, and to nothing else.
  cat >"$run/cni/10-faasrl.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "faasrl", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "dataDir": "$run/cni/state",
    "ranges": [[{"subnet": "$POD_RANGE"}]],
    "routes": [{"dst": "$NODE_RANGE"}]}}
]}
JSON
  start containerd containerd --config "$run/containerd/config.toml" --log-level warn
}
ready_containerd() { ready containerd 30 ctr_k8s version; }

load_pause_image() {
  cc -static -O1 -o "$run/pause" "$here/pause.c"
  python3 "$repo/tools/image.py" --out "$run/pause.tar" --name local/pause:1 --entrypoint /pause \
    --user 65532 "$run/pause:/pause" >>"$run/logs/images.log"
  load_image "$run/pause.tar"
}
load_image() { ctr_k8s image import "$1" >>"$run/logs/images.log"; }

start_kubelet() {
  cat >"$run/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $NODE_IP
port: $PORT_KUBELET
healthzPort: $PORT_KUBELET_HEALTH
tlsCertFile: $run/pki/kubelet-serving.crt
tlsPrivateKeyFile: $run/pki/kubelet-serving.key
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $run/pki/ca.crt}}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix://$run/containerd/sock
podLogsDir: $run/logs/pods
cgroupDriver: cgroupfs
cgroupRoot: /$CGROUP
enforceNodeAllocatable: []
failCgroupV1: false # 1.34 still takes cgroup v1
failSwapOn: false
evictionHard: {nodefs.available: 1%, imagefs.available: 1%, memory.available: 100Mi}
imageGCHighThresholdPercent: 100 # a loaded image cannot be pulled again
localStorageCapacityIsolation: false
makeIPTablesUtilChains: false
resolvConf: ""
registerNode: true
syncFrequency: 10s
nodeStatusUpdateFrequency: 5s
serializeImagePulls: false
YAML
  # --containerd is where cadvisor asks which pod a cgroup is of.
  start kubelet kubelet --config="$run/kubelet.yaml" --kubeconfig="$run/pki/kubelet.kubeconfig" \
    --hostname-override="$NODE" --node-ip="$NODE_IP" --root-dir="$run/kubelet" --cert-dir="$run/pki" \
    --containerd="$run/containerd/sock" --housekeeping-interval=1s
}
ready_kubelet() { ready kubelet 60 node_ready; }
node_ready() {
  http "http://127.0.0.1:$PORT_KUBELET_HEALTH/healthz" &&
    [[ $(kubectl_admin get node "$NODE" -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}') == True ]]
}

start_kube-proxy() {
  cat >"$run/kube-proxy.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $run/pki/kube-proxy.kubeconfig}
mode: iptables
clusterCIDR: $POD_RANGE
hostnameOverride: $NODE
bindAddress: $NODE_IP
metricsBindAddress: 127.0.0.1:$PORT_PROXY_METRICS
healthzBindAddress: 127.0.0.1:$PORT_PROXY_HEALTH
nodePortAddresses: [$NODE_IP/32]
iptables: {localhostNodePorts: false, minSyncPeriod: 200ms}
conntrack: {maxPerCore: 0} # the machine's own setting is not ours to change
YAML
  start kube-proxy kube-proxy --config="$run/kube-proxy.yaml"
}
ready_kube-proxy() { ready kube-proxy 30 http "http://127.0.0.1:$PORT_PROXY_HEALTH/healthz"; }

# clean_node DIR: what a node leaves on the machine when its processes are dead.
clean_node() {
  local dir=$1 root group target rule chain file id link
  # Containers outlive containerd.
  while read -r root; do
    [[ -d $root/$CGROUP ]] || continue
    find "$root/$CGROUP" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -u | xargs -r kill -KILL 2>/dev/null || true
  done < <(cgroup_roots)
  while read -r root; do
    [[ -d $root/$CGROUP ]] || continue
    find "$root/$CGROUP" -depth -type d | while read -r group; do
      for _ in {1..50}; do rmdir "$group" 2>/dev/null && break; sleep 0.05; done
    done
  done < <(cgroup_roots)
  # The shims' sockets are not below the run directory.
  for file in "$dir"/containerd/state/io.containerd.runtime.v2.task/*/*/address; do
    [[ -e $file ]] && rm -f "$(sed 's,^unix://,,' "$file")"
  done
  awk -v dir="$dir/" 'index($2, dir) == 1 {print $2}' /proc/mounts | sort -r | while read -r target; do
    umount -l "$target" || true
  done
  # A dead pod's link outlives it with its network namespace, and takes what is sent to its address.
  ip -o -4 route show root "$POD_RANGE" | sed -n 's/.* dev \(veth[^ ]*\).*/\1/p' | while read -r link; do
    ip link del "$link" 2>/dev/null || true
  done
  for file in /var/lib/cni/results/faasrl-*-eth0; do # what the plugins noted of pods that they never removed
    [[ -e $file ]] || continue
    id=${file##*/faasrl-}
    rm -f "$file" "/var/lib/cni/results/cni-loopback-${id%-eth0}-lo"
  done
  find /var/log/containers -lname "$dir/*" -delete 2>/dev/null || true
  if [[ -x $run/bin/kube-proxy ]] && [[ $(iptables-save 2>/dev/null) == *:KUBE-* ]]; then
    kube-proxy --cleanup >>"$run/logs/kube-proxy.log" 2>&1 || true
    for chain in INPUT OUTPUT; do # the chain that it forgets
      iptables -w -D "$chain" -j KUBE-FIREWALL 2>/dev/null || true
    done
    { iptables -w -F KUBE-FIREWALL && iptables -w -X KUBE-FIREWALL; } 2>/dev/null || true
  fi
  firewall_rules | while read -r chain rule; do
    # shellcheck disable=SC2086
    while iptables -w -D "$chain" $rule "${RULE[@]}" 2>/dev/null; do :; done
  done
  ip addr del "$NODE_IP/32" dev lo 2>/dev/null || true
  if [[ -e $dir/ip_forward.before ]]; then cat "$dir/ip_forward.before" >/proc/sys/net/ipv4/ip_forward; fi
  if [[ -e $cache/nodes ]]; then sed -i "\\,^$dir\$,d" "$cache/nodes"; fi
}
