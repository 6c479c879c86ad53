# shellcheck shell=bash disable=SC2034
# Where everything is. Ports and places can be set from outside.

repo=$(cd "$here/../.." && pwd)
run=$(realpath -m "${FAASRL_CLUSTER_DIR:-$repo/build/cluster}")
cache=${FAASRL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/faasrl-mpa}
kubeconfig=$run/kubeconfig

PORT_API=${FAASRL_PORT_API:-16443}
PORT_ETCD=${FAASRL_PORT_ETCD:-16379}
PORT_ETCD_PEER=${FAASRL_PORT_ETCD_PEER:-16380}
PORT_CONTROLLER_MANAGER=${FAASRL_PORT_CONTROLLER_MANAGER:-16257}
PORT_SCHEDULER=${FAASRL_PORT_SCHEDULER:-16259}
PORT_KUBELET=${FAASRL_PORT_KUBELET:-16250}
PORT_KUBELET_HEALTH=${FAASRL_PORT_KUBELET_HEALTH:-16248}
PORT_PROXY_METRICS=${FAASRL_PORT_PROXY_METRICS:-16249}
PORT_PROXY_HEALTH=${FAASRL_PORT_PROXY_HEALTH:-16256}
PORT_KWOK=${FAASRL_PORT_KWOK:-16247}
PORT_PROMETHEUS=${FAASRL_PORT_PROMETHEUS:-19090}

# Documentation ranges (RFC 5737), which are nobody's network: a mistake in a
# test cannot reach a real machine. 192.0.2.0/24 is left out because sandboxes
# use it for themselves.
NODE_IP=203.0.113.1 # on lo: the kubelet refuses a 127.x address
NODE_RANGE=203.0.113.0/24
SERVICE_RANGE=203.0.113.128/25
SERVICE_API_IP=203.0.113.129 # the first of the range: service kubernetes.default
SERVICE_DNS_IP=203.0.113.138 # of those that are given to nobody who does not ask for one
POD_RANGE=198.51.100.0/24
FAKE_POD_RANGE=2001:db8::/64 # RFC 3849; more fake pods than the ranges above have addresses

NODE=node0
CGROUP=faasrl-cluster # parent of all pods' cgroups, so that what is in it is ours

CONTROL_PLANE=(etcd kube-apiserver kube-controller-manager kube-scheduler)
NODE_COMPONENTS=(containerd kubelet kube-proxy pod-targets prometheus) # kept apart: they need a real node
NODE_PACKAGES=(containerd runc containernetworking-plugins iptables conntrack prometheus gcc libc6-dev python3)

# A proxy for the outside has no business with the cluster.
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY
# Debian keeps daemons where a plain user's PATH does not look.
PATH=$run/bin:$PATH:/usr/sbin:/sbin
