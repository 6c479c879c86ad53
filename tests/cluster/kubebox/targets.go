package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"sort"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// targetGroup is one entry of a Prometheus file_sd file.
type targetGroup struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// podTargets keeps a Prometheus file_sd file of one node's pods that ask to be
// scraped: Debian's Prometheus is built without Kubernetes service discovery.
func podTargets() {
	flags := flag.NewFlagSet("pod-targets", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API server")
	node := flags.String("node", "", "whose pods")
	out := flags.String("out", "", "the file_sd file to write")
	flags.Parse(os.Args[1:])
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		fail("pod-targets", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		fail("pod-targets", err)
	}

	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", *node).String()
	}))
	pods := factory.Core().V1().Pods()
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { notify() },
		UpdateFunc: func(any, any) { notify() },
		DeleteFunc: func(any) { notify() },
	})
	ctx := context.Background()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	last := ""
	for notify(); ; time.Sleep(200 * time.Millisecond) {
		<-changed
		list, err := pods.Lister().List(labels.Everything())
		if err != nil {
			fail("pod-targets", err)
		}
		text := encodeTargets(list)
		if text == last {
			continue
		}
		last = text
		// Renamed into place: Prometheus never reads half a file.
		if err := os.WriteFile(*out+".new", []byte(text), 0o644); err != nil {
			fail("pod-targets", err)
		}
		if err := os.Rename(*out+".new", *out); err != nil {
			fail("pod-targets", err)
		}
		fmt.Println(time.Now().Format(time.RFC3339), text)
	}
}

func encodeTargets(pods []*v1.Pod) string {
	sort.Slice(pods, func(i, j int) bool {
		return pods[i].Namespace+"/"+pods[i].Name < pods[j].Namespace+"/"+pods[j].Name
	})
	groups := []targetGroup{}
	for _, pod := range pods {
		groups = append(groups, targetsOf(pod)...)
	}
	text, _ := json.Marshal(groups)
	return string(text)
}

// targetsOf reads the usual annotations: prometheus.io/scrape "true", and
// prometheus.io/port (else every declared port) and prometheus.io/path.
func targetsOf(pod *v1.Pod) (groups []targetGroup) {
	if pod.Annotations["prometheus.io/scrape"] != "true" || pod.Status.Phase != v1.PodRunning || pod.Status.PodIP == "" {
		return nil
	}
	add := func(container string, port string) {
		group := targetGroup{
			Targets: []string{net.JoinHostPort(pod.Status.PodIP, port)},
			Labels:  map[string]string{"namespace": pod.Namespace, "pod": pod.Name, "container": container},
		}
		if path := pod.Annotations["prometheus.io/path"]; path != "" {
			group.Labels["__metrics_path__"] = path
		}
		groups = append(groups, group)
	}
	asked := pod.Annotations["prometheus.io/port"]
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			number := strconv.Itoa(int(port.ContainerPort))
			if asked == "" || asked == number {
				add(container.Name, number)
			}
		}
	}
	if len(groups) == 0 && asked != "" {
		add(pod.Spec.Containers[0].Name, asked)
	}
	return groups
}
