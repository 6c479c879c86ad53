package main

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

const (
	startMs        = 2000 // until a new pod is ready
	resizeMs       = 1000 // until the kubelet has carried out a resize
	tickMs         = 200
	controlledName = "auto"
	watchedName    = "off"
)

// What Kubernetes' own controllers and the kubelet do: pods for Deployments, sizes for pods.
type fakeCluster struct {
	store     objects
	clock     *clock
	namespace string
	made      int
	sets      map[string]string // the uid of each Deployment's ReplicaSet
	since     map[string]int64  // pod: when it was made, or its resize was seen
}

func container(cpu string) object {
	return object{"name": "function", "image": "none", "resources": object{
		"requests": object{"cpu": cpu, "memory": "64Mi"}, "limits": object{"cpu": cpu, "memory": "128Mi"}}}
}

func (f *fakeCluster) deploy(name string, replicas int, cpu string) {
	labels := object{"app": name}
	meta := func(kind, name string) object {
		return object{"name": name, "namespace": f.namespace, "uid": kind + "-" + name, "generation": 1,
			"labels": labels, "creationTimestamp": f.clock.stamp()}
	}
	spec := object{"replicas": replicas, "selector": object{"matchLabels": labels}, "template": object{
		"metadata": object{"labels": labels}, "spec": object{"containers": []any{container(cpu)}}}}
	made, _ := f.store.create(deployments, object{"kind": "Deployment", "apiVersion": "apps/v1",
		"metadata": meta("deployment", name), "spec": spec, "status": object{"replicas": replicas}})
	set := object{"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": meta("set", name+"-1"), "spec": spec,
		"status": object{"replicas": replicas}}
	set["metadata"].(object)["ownerReferences"] = owner("Deployment", name, text(made, "metadata", "uid"))
	made, _ = f.store.create(replicaSets, set)
	f.sets[name] = text(made, "metadata", "uid")
}

func owner(kind, name, uid string) []any {
	return []any{object{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true}}
}

func (f *fakeCluster) podsOf(name string) []object {
	all, _ := f.store.list(pods, f.namespace)
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
		"metadata": object{"name": pod, "namespace": f.namespace, "uid": "pod-" + pod, "labels": object{"app": name},
			"creationTimestamp": f.clock.stamp(), "ownerReferences": owner("ReplicaSet", name+"-1", f.sets[name])},
		"spec":   clone(object{"c": at(deployment, "spec", "template", "spec")})["c"],
		"status": object{"phase": "Pending", "qosClass": "Burstable"}})
	f.since[pod] = f.clock.now()
}

func condition(kind, status, since string) []any {
	return []any{object{"type": kind, "status": status, "lastTransitionTime": since}}
}

// Whether that has lasted for so long.
func (f *fakeCluster) lasts(pod string, ms int64) bool {
	if _, known := f.since[pod]; !known {
		f.since[pod] = f.clock.now()
	}
	return f.clock.now()-f.since[pod] >= ms
}

// One step of a pod's life, if it is time.
func (f *fakeCluster) tend(pod object) {
	name := text(pod, "metadata", "name")
	running := text(pod, "status", "phase") == "Running"
	switch {
	case !running && f.lasts(name, startMs):
		f.store.update(pods, keyOf(pod), func(o object) bool {
			o["status"] = object{"phase": "Running", "qosClass": "Burstable", "startTime": text(o, "metadata", "creationTimestamp"),
				"conditions": condition("Ready", "True", f.clock.stamp())}
			inForce(o)
			return true
		})
		delete(f.since, name)
	case running && !isInForce(pod) && f.lasts(name, resizeMs):
		f.store.update(pods, keyOf(pod), func(o object) bool {
			inForce(o)
			return true
		})
		delete(f.since, name)
	}
}

func isInForce(pod object) bool {
	containers, _ := at(pod, "spec", "containers").([]any)
	statuses, _ := at(pod, "status", "containerStatuses").([]any)
	return len(statuses) == len(containers) && reflect.DeepEqual(at(containers[0], "resources"), at(statuses[0], "resources"))
}

func inForce(pod object) {
	var statuses []any
	for _, c := range at(pod, "spec", "containers").([]any) {
		statuses = append(statuses, clone(object{"name": at(c, "name"), "ready": true, "resources": at(c, "resources")}))
	}
	pod["status"].(object)["containerStatuses"] = statuses
}

func (f *fakeCluster) reconcile(name string) {
	deployment := f.store.get(deployments, f.namespace+"/"+name)
	if deployment == nil {
		return // its server is gone for a while
	}
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
		f.store.update(resource, f.namespace+"/"+key, func(o object) bool {
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
