# shellcheck shell=bash
# Certificates (elliptic curves: made in no time) and kubeconfigs, new for each cluster.

# certificate NAME SUBJECT USAGE [SUBJECTALTNAME]
certificate() {
  local file=$run/pki/$1
  {
    openssl ecparam -genkey -noout -name prime256v1 -out "$file.key"
    openssl req -new -key "$file.key" -subj "$2" -out "$file.csr"
    openssl x509 -req -in "$file.csr" -CA "$run/pki/ca.crt" -CAkey "$run/pki/ca.key" -days 3650 \
      -set_serial "0x$(openssl rand -hex 8)" -out "$file.crt" \
      -extfile <(echo "extendedKeyUsage=$3" && echo "${4:+subjectAltName=$4}")
    rm "$file.csr"
  } 2>>"$run/logs/pki.log"
}

# kubeconfig NAME SUBJECT FILE: with a client certificate for the subject.
kubeconfig() {
  local name=$1
  certificate "$name" "$2" clientAuth
  cat >"$3" <<YAML
apiVersion: v1
kind: Config
current-context: faasrl-test
contexts:
- name: faasrl-test
  context: {cluster: faasrl-test, user: $name}
clusters:
- name: faasrl-test
  cluster:
    server: https://127.0.0.1:$PORT_API
    certificate-authority-data: $(base64 -w0 "$run/pki/ca.crt")
users:
- name: $name
  user:
    client-certificate-data: $(base64 -w0 "$run/pki/$name.crt")
    client-key-data: $(base64 -w0 "$run/pki/$name.key")
YAML
}

make_pki() {
  (
    umask 077
    mkdir -p "$run/pki"
    openssl ecparam -genkey -noout -name prime256v1 -out "$run/pki/ca.key"
    openssl req -x509 -new -key "$run/pki/ca.key" -subj /CN=faasrl-test-ca -days 3650 -out "$run/pki/ca.crt"
    openssl ecparam -genkey -noout -name prime256v1 -out "$run/pki/sa.key" # signs service account tokens
    openssl ec -in "$run/pki/sa.key" -pubout -out "$run/pki/sa.pub" 2>/dev/null
    certificate apiserver /CN=kube-apiserver serverAuth \
      "IP:127.0.0.1,IP:$NODE_IP,IP:$SERVICE_API_IP,DNS:localhost,DNS:kubernetes.default,DNS:kubernetes.default.svc"
    certificate kubelet-serving "/O=system:nodes/CN=system:node:$NODE" serverAuth "IP:$NODE_IP"
    certificate kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client clientAuth
    certificate front-proxy /CN=front-proxy clientAuth
    kubeconfig admin /O=system:masters/CN=admin "$kubeconfig"
    local name
    for name in kube-controller-manager kube-scheduler kube-proxy; do # bound to their roles by Kubernetes itself
      kubeconfig "$name" "/CN=system:$name" "$run/pki/$name.kubeconfig"
    done
    kubeconfig kubelet "/O=system:nodes/CN=system:node:$NODE" "$run/pki/kubelet.kubeconfig"
    kubeconfig kwok /O=system:masters/CN=kwok "$run/pki/kwok.kubeconfig"
    kubeconfig prometheus /CN=prometheus "$run/pki/prometheus.kubeconfig"
  )
}
