// kubebox is the test cluster's Kubernetes in one multi-call binary: the
// first argument, or the name it is run by, says which program it is.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// serve wraps a Kubernetes component, whose errors cli.Run prints.
func serve(newCommand func() *cobra.Command) func() {
	return func() { os.Exit(cli.Run(newCommand())) }
}

var applets = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"etcd-compact":            etcdCompact,
	"kube-apiserver":          serve(apiserver.NewAPIServerCommand),
	"kube-controller-manager": serve(func() *cobra.Command { return kcm.NewControllerManagerCommand() }),
	"kube-scheduler":          serve(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kube-proxy":              serve(kubeproxy.NewProxyCommand),
	"kubelet":                 serve(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	"pod-targets":             podTargets,
	"kubectl": func() {
		// As kubectl's own main does it: errors keep kubectl's wording.
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
	},
}

func main() {
	name := filepath.Base(os.Args[0])
	if _, known := applets[name]; !known && len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = os.Args[1:]
	}
	run, known := applets[name]
	if !known {
		var names []string
		for n := range applets {
			names = append(names, n)
		}
		sort.Strings(names)
		fmt.Fprintf(os.Stderr, "kubebox: unknown applet %q; there are: %s\n", name, strings.Join(names, " "))
		os.Exit(2)
	}
	run()
}

// etcdCompact drops etcd's history before its current revision, so that a
// watch from an older one must end with "too old".
func etcdCompact() {
	if len(os.Args) != 2 {
		fail("etcd-compact", "want one argument, the endpoint")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{Endpoints: os.Args[1:], DialTimeout: 5 * time.Second, Context: ctx})
	if err != nil {
		fail("etcd-compact", err)
	}
	defer client.Close()
	got, err := client.Get(ctx, "compact_rev_key") // any key tells the revision
	if err != nil {
		fail("etcd-compact", err)
	}
	if _, err := client.Compact(ctx, got.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		fail("etcd-compact", err)
	}
	fmt.Println(got.Header.Revision)
}

func fail(applet string, why any) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", applet, why)
	os.Exit(1)
}
