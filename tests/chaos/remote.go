package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// What a cluster's objects are kept in: a store of ours, or a real API server with etcd.
type objects interface {
	create(resource string, o object) (object, bool)
	update(resource, key string, change func(object) bool) (object, bool)
	remove(resource, key string)
	get(resource, key string) object
	list(resource, namespace string) ([]object, int)
	forgetHistory()
}

// A real API server, which tests/chaos/server has started in dir.
type realServer struct {
	dir, script string
	base        *url.URL
	client      *http.Client
	alone       sync.RWMutex // schedules that restart it have it for themselves
	namespaces  atomic.Int64 // nobody ends them here: each is used once
}

func openServer(dir, script string) (*realServer, error) {
	ca, err := os.ReadFile(filepath.Join(dir, "pki/ca.crt"))
	if err != nil {
		return nil, err
	}
	admin, err := tls.LoadX509KeyPair(filepath.Join(dir, "pki/admin.crt"), filepath.Join(dir, "pki/admin.key"))
	if err != nil {
		return nil, err
	}
	said, err := exec.Command(filepath.Join(dir, "bin/kubectl"), "--kubeconfig="+filepath.Join(dir, "kubeconfig"),
		"config", "view", "-o", "jsonpath={.clusters[0].cluster.server}").Output()
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(string(said))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	transport := &http.Transport{MaxIdleConnsPerHost: 100,
		TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{admin}, MinVersion: tls.VersionTLS12}}
	return &realServer{dir: dir, script: script, base: base, client: &http.Client{Transport: transport, Timeout: time.Minute}}, nil
}

// etcd or kube-apiserver; what it says goes where we say things.
func (s *realServer) control(action, name string) {
	cmd := exec.Command(s.script, action, name)
	cmd.Env = append(os.Environ(), "CHAOS_SERVER_DIR="+s.dir)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintf(os.Stderr, "chaos: %s %s %s: %v\n", s.script, action, name, err)
	}
}

// Behind a gate: with the administrator's rights, as the gate tells writers apart by their tokens.
func (s *realServer) handler() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(s.base)
			r.Out.Header.Del("Authorization")
		},
		Transport:     s.client.Transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if _, buffered := w.(http.Flusher); buffered && r.Method == "GET" {
				panic(http.ErrAbortHandler)
			}
			refuse(w, 502, "ServiceUnavailable", "the API server is gone")
		},
	}
}

// --- objects ----------------------------------------------------------------------------------------

// "apps/v1/deployments", "ns/name" → its path.
func (s *realServer) path(resource, namespace, name string) string {
	group, plural, _ := cutLast(resource)
	prefix := "/apis/"
	if !strings.Contains(group, "/") {
		prefix = "/api/"
	}
	out := prefix + group
	if namespace != "" {
		out += "/namespaces/" + namespace
	}
	return strings.TrimSuffix(out+"/"+plural+"/"+name, "/")
}

func (s *realServer) ask(method, path string, body object) (object, int) {
	data, _ := json.Marshal(body)
	request, err := http.NewRequestWithContext(context.Background(), method, s.base.String()+path, bytes.NewReader(data))
	if err != nil {
		return nil, 0
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return nil, 0
	}
	defer response.Body.Close()
	var out object
	data, _ = io.ReadAll(response.Body)
	_ = json.Unmarshal(data, &out)
	return out, response.StatusCode
}

func (s *realServer) create(resource string, o object) (object, bool) {
	made, code := s.ask("POST", s.path(resource, text(o, "metadata", "namespace"), ""), o)
	if code == 0 || code >= 500 {
		return nil, false // it is gone for a while
	}
	if code != 201 {
		panic(fmt.Sprintf("%s %s was refused: %v", resource, keyOf(o), made["message"]))
	}
	if o["status"] != nil {
		made["status"] = o["status"]
		made, code = s.ask("PUT", s.path(resource, text(o, "metadata", "namespace"), text(o, "metadata", "name"))+"/status", made)
	}
	return made, code == 200 || code == 201
}

func (s *realServer) update(resource, key string, change func(object) bool) (object, bool) {
	namespace, name, _ := strings.Cut(key, "/")
	path := s.path(resource, namespace, name)
	for range 3 {
		old := s.get(resource, key)
		if old == nil {
			return nil, false
		}
		o := clone(old)
		if !change(o) {
			return old, false
		}
		o = clone(o)
		code := 200
		if !reflect.DeepEqual(o["spec"], old["spec"]) {
			var changed object
			changed, code = s.ask("PUT", path, o)
			if code == 200 {
				changed["status"], o = o["status"], changed
			}
		}
		if code == 200 {
			o, code = s.ask("PUT", path+"/status", o)
		}
		if code == 200 {
			return o, true
		}
	}
	return nil, false
}

func (s *realServer) remove(resource, key string) {
	namespace, name, _ := strings.Cut(key, "/")
	s.ask("DELETE", s.path(resource, namespace, name)+"?gracePeriodSeconds=0", object{})
}

func (s *realServer) get(resource, key string) object {
	namespace, name, _ := strings.Cut(key, "/")
	o, code := s.ask("GET", s.path(resource, namespace, name), nil)
	if code != 200 {
		return nil
	}
	return o
}

func (s *realServer) list(resource, namespace string) ([]object, int) {
	o, code := s.ask("GET", s.path(resource, namespace, ""), nil)
	if code != 200 {
		return nil, 0
	}
	var out []object
	items, _ := o["items"].([]any)
	for _, item := range items {
		out = append(out, item.(object))
	}
	return out, 0
}

func (s *realServer) forgetHistory() {}

// A namespace where pods can be made.
func (s *realServer) prepare(namespace string) {
	s.create("v1/namespaces", object{"metadata": object{"name": namespace}})
	s.create("v1/serviceaccounts", object{"metadata": object{"name": "default", "namespace": namespace}})
}

func (s *realServer) clear(namespace string) {
	for _, resource := range []string{mpas, deployments, replicaSets, pods} {
		s.ask("DELETE", s.path(resource, namespace, "")+"?gracePeriodSeconds=0", object{})
	}
}
