package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The part of Kubernetes' API that the controller uses, on a store. It stands for the real one, which
// cannot be had a thousand times: tests/e2e/test_trouble.py has faults before that.
type apiServer struct {
	store *store
	clock *clock
}

var kinds = map[string]string{
	"v1/pods":                                 "Pod",
	"v1/events":                               "Event",
	"apps/v1/deployments":                     "Deployment",
	"apps/v1/replicasets":                     "ReplicaSet",
	"apps/v1/statefulsets":                    "StatefulSet",
	"coordination.k8s.io/v1/leases":           "Lease",
	"autoscaling/v2/horizontalpodautoscalers": "HorizontalPodAutoscaler",
	"autoscaling.faasrl.io/v1alpha1/multidimpodautoscalers": "MultidimPodAutoscaler",
}

const (
	pods        = "v1/pods"
	deployments = "apps/v1/deployments"
	replicaSets = "apps/v1/replicasets"
	leases      = "coordination.k8s.io/v1/leases"
	mpas        = "autoscaling.faasrl.io/v1alpha1/multidimpodautoscalers"
)

type asked struct {
	resource, namespace, name, sub string
}

// /api/v1/… and /apis/GROUP/VERSION/…, with or without a namespace.
func parsePath(path string) (asked, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var group string
	switch {
	case len(parts) > 2 && parts[0] == "api":
		group, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1]+"/"+parts[2], parts[3:]
	default:
		return asked{}, false
	}
	var a asked
	if len(parts) > 2 && parts[0] == "namespaces" {
		a.namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	a.resource, a.name, a.sub = group+"/"+parts[0], parts[1], parts[2]
	return a, true
}

func (a asked) key() string { return a.namespace + "/" + a.name }

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func statusObject(code int, reason, message string) object {
	return object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
		"reason": reason, "message": message}
}

func refuse(w http.ResponseWriter, code int, reason, message string) {
	answer(w, code, statusObject(code, reason, message))
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, ok := parsePath(r.URL.Path)
	kind, known := kinds[a.resource]
	if !ok || !known {
		refuse(w, 404, "NotFound", "the server could not find the requested resource")
		return
	}
	switch {
	case r.Method == "GET" && r.URL.Query().Get("watch") != "":
		s.watch(w, r, a, kind)
	case r.Method == "GET" && a.name == "":
		s.list(w, r, a, kind)
	case r.Method == "GET":
		s.answerObject(w, s.store.get(a.resource, a.key()), a)
	default:
		s.write(w, r, a)
	}
}

func (s *apiServer) answerObject(w http.ResponseWriter, o object, a asked) {
	if o == nil {
		refuse(w, 404, "NotFound", a.resource+" \""+a.name+"\" not found")
		return
	}
	answer(w, 200, o)
}

func (s *apiServer) list(w http.ResponseWriter, r *http.Request, a asked, kind string) {
	items, version := s.store.list(a.resource, a.namespace)
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	meta := object{"resourceVersion": fmt.Sprint(version)}
	items = items[min(from, len(items)):]
	if limit > 0 && len(items) > limit {
		items = items[:limit]
		meta["continue"] = fmt.Sprint(from + limit)
	}
	group, _, _ := cutLast(a.resource)
	answer(w, 200, object{"kind": kind + "List", "apiVersion": group, "metadata": meta,
		"items": append([]object{}, items...)})
}

func cutLast(s string) (string, string, bool) {
	i := strings.LastIndex(s, "/")
	return s[:i], s[i+1:], true
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, a asked, kind string) {
	version, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	seconds, _ := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	end := s.clock.now() + int64(seconds)*1000
	group, _, _ := cutLast(a.resource)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(200)
	flush(w)
	for s.clock.now() < end {
		lines, last, changed, gone := s.store.since(version, a.resource, a.namespace)
		if gone {
			_ = json.NewEncoder(w).Encode(object{"type": "ERROR", "object": statusObject(410, "Expired",
				fmt.Sprintf("too old resource version: %d", version))})
			flush(w)
			return
		}
		for _, line := range lines {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
		version = last
		flush(w)
		if !s.await(r, w, changed, group, kind, version) {
			return
		}
	}
}

// Until something changes; a bookmark goes out now and then.
func (s *apiServer) await(r *http.Request, w http.ResponseWriter, changed chan struct{}, group, kind string, version int) bool {
	timer := time.After(s.clock.real(30000))
	select {
	case <-r.Context().Done():
		return false
	case <-changed:
	case <-timer:
		_ = json.NewEncoder(w).Encode(object{"type": "BOOKMARK", "object": object{"kind": kind,
			"apiVersion": group, "metadata": object{"resourceVersion": fmt.Sprint(version)}}})
	}
	return true
}

func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

// --- writes -----------------------------------------------------------------------------------------

func (s *apiServer) write(w http.ResponseWriter, r *http.Request, a asked) {
	var body object
	data, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
	if err != nil || json.Unmarshal(data, &body) != nil {
		refuse(w, 400, "BadRequest", "the body is no object")
		return
	}
	switch r.Method {
	case "POST":
		s.post(w, a, body)
	case "PUT":
		s.replace(w, a, body)
	case "PATCH":
		s.patch(w, a, body)
	default:
		refuse(w, 405, "MethodNotAllowed", r.Method)
	}
}

func (s *apiServer) post(w http.ResponseWriter, a asked, body object) {
	meta, _ := body["metadata"].(object)
	if meta == nil {
		refuse(w, 422, "Invalid", "metadata: Required value")
		return
	}
	meta["namespace"] = a.namespace
	meta["uid"] = a.resource + keyOf(body)
	o, ok := s.store.create(a.resource, body)
	if !ok {
		refuse(w, 409, "AlreadyExists", keyOf(body)+" already exists")
		return
	}
	answer(w, 201, o)
}

func (s *apiServer) replace(w http.ResponseWriter, a asked, body object) {
	o, ok := s.store.update(a.resource, a.key(), func(o object) bool {
		if v := text(body, "metadata", "resourceVersion"); v != "" && v != text(o, "metadata", "resourceVersion") {
			return false
		}
		clear(o)
		for k, v := range body {
			o[k] = v
		}
		return true
	})
	switch {
	case ok:
		answer(w, 200, o)
	case o == nil:
		refuse(w, 404, "NotFound", a.name+" not found")
	default:
		refuse(w, 409, "Conflict", "the object has been modified")
	}
}

func (s *apiServer) patch(w http.ResponseWriter, a asked, body object) {
	change := func(o object) bool { mergePatch(o, body); return true }
	switch a.sub {
	case "status":
		change = func(o object) bool {
			o["status"] = mergePatch(o["status"], body["status"])
			return true
		}
	case "scale":
		change = func(o object) bool {
			o["spec"].(object)["replicas"] = number(body, "spec", "replicas")
			return true
		}
	case "resize":
		change = func(o object) bool { return resize(o, body) }
	}
	o, _ := s.store.update(a.resource, a.key(), change)
	if o != nil && a.sub == "scale" {
		o = object{"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": o["metadata"],
			"spec": object{"replicas": at(o, "spec", "replicas")}}
	}
	s.answerObject(w, o, a)
}

// Strategic: containers are merged by name. The kubelet carries it out a moment later.
func resize(o, body object) bool {
	patches, _ := at(body, "spec", "containers").([]any)
	containers, _ := at(o, "spec", "containers").([]any)
	for _, p := range patches {
		i := slices.IndexFunc(containers, func(c any) bool { return text(c, "name") == text(p, "name") })
		if i >= 0 {
			mergePatch(containers[i], p)
		}
	}
	return true
}
