package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"time"
)

const group = "/apis/metrics.k8s.io/v1beta1"

// The part of metrics.k8s.io that an HPA controller and a VPA recommender ask for: pods of one app, or all.
func serveMetricsAPI(listen, namespace string, fleet *fleet) error {
	certificate, err := selfSigned()
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+group, discover)
	mux.HandleFunc("GET "+group+"/pods", fleet.tellAll)
	mux.HandleFunc("GET "+group+"/namespaces/"+namespace+"/pods", fleet.tellSome)
	server := &http.Server{Addr: listen, Handler: mux,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{*certificate}}}
	return server.ListenAndServeTLS("", "")
}

// The API server is told not to verify it.
func selfSigned() (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(240 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

func discover(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"metrics.k8s.io/v1beta1","resources":[`+
		`{"name":"pods","singularName":"","namespaced":true,"kind":"PodMetrics","verbs":["get","list"]}]}`)
}

func writePods(w http.ResponseWriter, pods []*pod) {
	now := time.Now().UTC().Format(time.RFC3339)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[`)
	for i, p := range pods {
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		fmt.Fprintf(w, `{"metadata":{"name":%q,"namespace":%q,"labels":{"app":%q},"creationTimestamp":%q},"timestamp":%q,`+
			`"window":"15s","containers":[{"name":"function","usage":{"cpu":"%dn","memory":"%dKi"}}]}`,
			p.name, p.namespace, p.app, now, now, int64(p.usage*1e9), memory>>10)
	}
	fmt.Fprint(w, "]}")
}

func (f *fleet) tellAll(w http.ResponseWriter, _ *http.Request) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var pods []*pod
	for _, p := range f.pods {
		pods = append(pods, p)
	}
	writePods(w, pods)
}

func (f *fleet) tellSome(w http.ResponseWriter, r *http.Request) {
	app, found := strings.CutPrefix(r.FormValue("labelSelector"), "app=")
	if !found {
		f.tellAll(w, r)
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var pods []*pod
	if function := f.functions[app]; function != nil {
		for _, p := range function.pods {
			pods = append(pods, p)
		}
	}
	writePods(w, pods)
}
