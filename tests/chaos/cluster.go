package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

const (
	namespace      = "chaos"
	startMs        = 2000 // until a new pod is ready
	resizeMs       = 1000 // until the kubelet has carried out a resize
	tickMs         = 200
	controlledName = "auto"
	watchedName    = "off"
)

// What Kubernetes' own controllers and the kubelet do: pods for Deployments, sizes for pods.
type fakeCluster struct {
	store *store
	clock *clock
	made  int
}

func container(cpu string) object {
	return object{"name": "function", "resources": object{
		"requests": object{"cpu": cpu, "memory": "64Mi"}, "limits": object{"cpu": cpu, "memory": "128Mi"}}}
}

func (f *fakeCluster) deploy(name string, replicas int, cpu string) {
	labels := object{"app": name}
	meta := func(kind, name string) object {
		return object{"name": name, "namespace": namespace, "uid": kind + "-" + name, "generation": 1,
			"labels": labels, "creationTimestamp": f.clock.stamp()}
	}
	f.store.create(deployments, object{"kind": "Deployment", "apiVersion": "apps/v1", "metadata": meta("deployment", name),
		"spec": object{"replicas": replicas, "selector": object{"matchLabels": labels},
			"template": object{"metadata": object{"labels": labels}, "spec": object{"containers": []any{container(cpu)}}}},
		"status": object{"replicas": replicas}})
	set := object{"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": meta("set", name+"-1"),
		"spec": object{"replicas": replicas}, "status": object{"replicas": replicas}}
	set["metadata"].(object)["ownerReferences"] = owner("Deployment", name, "deployment-"+name)
	f.store.create(replicaSets, set)
}

func owner(kind, name, uid string) []any {
	return []any{object{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true}}
}

func (f *fakeCluster) podsOf(name string) []object {
	all, _ := f.store.list(pods, namespace)
	var out []object
	for _, p := range all {
		if strings.HasPrefix(text(p, "metadata", "name"), name+"-1-") {
			out = append(out, p)
		}
	}
	return out
}

func (f *fakeCluster) makePod(deployment object) {
	f.made++
	name := text(deployment, "metadata", "name")
	pod := fmt.Sprintf("%s-1-%04d", name, f.made)
	f.store.create(pods, object{"kind": "Pod", "apiVersion": "v1",
		"metadata": object{"name": pod, "namespace": namespace, "uid": "pod-" + pod, "labels": object{"app": name},
			"creationTimestamp": f.clock.stamp(), "ownerReferences": owner("ReplicaSet", name+"-1", "set-"+name+"-1")},
		"spec":   clone(object{"c": at(deployment, "spec", "template", "spec")})["c"],
		"status": object{"phase": "Pending", "qosClass": "Burstable"}, "madeAt": f.clock.now()})
}

func condition(kind, status, since string) []any {
	return []any{object{"type": kind, "status": status, "lastTransitionTime": since}}
}

// One step of a pod's life, if it is time.
func (f *fakeCluster) tend(pod object) {
	now := f.clock.now()
	running := text(pod, "status", "phase") == "Running"
	_, waits := pod["resizedAt"]
	switch {
	case !running && now-int64(number(pod, "madeAt")) >= startMs:
		f.store.update(pods, keyOf(pod), func(o object) bool {
			o["status"] = object{"phase": "Running", "qosClass": "Burstable", "startTime": text(o, "metadata", "creationTimestamp"),
				"conditions": condition("Ready", "True", f.clock.stamp())}
			inForce(o)
			return true
		})
	case running && waits && now-int64(number(pod, "resizedAt")) >= resizeMs:
		f.store.update(pods, keyOf(pod), func(o object) bool {
			delete(o, "resizedAt")
			inForce(o)
			return true
		})
	}
}

func inForce(pod object) {
	var statuses []any
	for _, c := range at(pod, "spec", "containers").([]any) {
		statuses = append(statuses, clone(object{"name": at(c, "name"), "ready": true, "resources": at(c, "resources")}))
	}
	pod["status"].(object)["containerStatuses"] = statuses
}

func (f *fakeCluster) reconcile(name string) {
	deployment := f.store.get(deployments, namespace+"/"+name)
	wanted := number(deployment, "spec", "replicas")
	have := f.podsOf(name)
	for i := len(have); i < wanted; i++ {
		f.makePod(deployment)
	}
	for i := wanted; i < len(have); i++ {
		f.store.remove(pods, keyOf(have[i]))
	}
	for _, pod := range f.podsOf(name) {
		f.tend(pod)
	}
	for resource, key := range map[string]string{deployments: name, replicaSets: name + "-1"} {
		f.store.update(resource, namespace+"/"+key, func(o object) bool {
			if number(o, "status", "replicas") == wanted && number(o, "spec", "replicas") == wanted {
				return false
			}
			o["spec"].(object)["replicas"] = wanted
			o["status"] = object{"replicas": wanted, "readyReplicas": wanted}
			return true
		})
	}
}

func (f *fakeCluster) run(ctx context.Context) {
	for f.clock.sleep(ctx, tickMs) {
		f.reconcile(controlledName)
		f.reconcile(watchedName)
	}
}

// A node goes, and takes a pod with it.
func (f *fakeCluster) losePod(nth int) {
	if have := f.podsOf(controlledName); len(have) > 0 {
		f.store.remove(pods, keyOf(have[nth%len(have)]))
	}
}

// Milli-CPU of the function in a pod, from "250m" or "1".
func milli(quantity string) int64 {
	if n, found := strings.CutSuffix(quantity, "m"); found {
		v, _ := strconv.ParseInt(n, 10, 64)
		return v
	}
	v, err := strconv.ParseFloat(quantity, 64)
	if err != nil {
		return -1
	}
	return int64(v * 1000)
}
