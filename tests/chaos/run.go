package main

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// What all schedules have in common.
type setting struct {
	program, mpactl, preload string
	dir                      string
	warp                     int64
	server                   *realServer // nil: a store of ours
	certificate              tls.Certificate
	authority                []byte
}

// The cluster, the doors and the controllers of one schedule.
type world struct {
	*setting
	schedule    schedule
	clock       *clock
	cluster     *fakeCluster
	backend     http.Handler
	record      *record
	gates       []*gate
	controllers []*controller
	endings     []func()
	lag         lag
	diskMu      sync.Mutex
	fullAt      int64 // ms; 0: the disk was never full
	crashes     []fault
	writes      map[string]int64
}

// How late this machine wakes who sleeps: what it delays itself is not the controller's.
type lag struct {
	mu           sync.Mutex
	worst, total time.Duration
}

func (l *lag) watch(ctx context.Context) {
	const nap = 20 * time.Millisecond
	for ctx.Err() == nil {
		began := time.Now()
		time.Sleep(nap)
		late := time.Since(began) - nap
		l.mu.Lock()
		l.worst, l.total = max(l.worst, late), l.total+late
		l.mu.Unlock()
	}
}

func (l *lag) reset() { l.mu.Lock(); l.worst, l.total = 0, 0; l.mu.Unlock() }

// A controller that recovers waits several times for its turn.
func (l *lag) get() time.Duration { l.mu.Lock(); defer l.mu.Unlock(); return max(3*l.worst, 2*l.total) }

// --- the MPAs ---------------------------------------------------------------------------------------

var bounds = rules{MinReplicas: 2, MaxReplicas: 8, MinCPU: 100, MaxCPU: 600, UpPods: 2, UpPeriodMs: 30000,
	DownPods: 1, DownPeriodMs: 30000, StableMs: 30000}

func policies(pods, periodMs, stableMs int) object {
	return object{"stabilizationWindowSeconds": stableMs / 1000,
		"policies": []any{object{"type": "Pods", "value": pods, "periodSeconds": periodMs / 1000}}}
}

func makeMPA(namespace, name, mode, recommender, created string) object {
	b := bounds
	cpu := func(milli int) object { return object{"cpu": fmt.Sprintf("%dm", milli)} }
	return object{"apiVersion": "autoscaling.faasrl.io/v1alpha1", "kind": "MultidimPodAutoscaler",
		"metadata": object{"name": name, "namespace": namespace, "uid": "mpa-" + name, "generation": 1, "creationTimestamp": created},
		"spec": object{
			"scaleTargetRef": object{"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
			"goals": object{"latency": object{"percentile": 99, "target": "250ms"},
				"metrics": []any{object{"type": "Resource", "resource": object{"name": "cpu",
					"target": object{"type": "Utilization", "averageUtilization": 70}}}}},
			"constraints": object{
				"global": object{"minReplicas": b.MinReplicas, "maxReplicas": b.MaxReplicas, "behavior": object{
					"scaleUp": policies(b.UpPods, b.UpPeriodMs, 0), "scaleDown": policies(b.DownPods, b.DownPeriodMs, b.StableMs)}},
				"containerControlledResources": []any{"cpu"},
				"container": []any{object{"name": "function", "controlledValues": "RequestsAndLimits",
					"requests": object{"minAllowed": cpu(b.MinCPU), "maxAllowed": cpu(b.MaxCPU)}}}},
			"policy":       object{"updateMode": mode},
			"recommenders": []any{object{"name": recommender}}}}
}

// --- building ---------------------------------------------------------------------------------------

func newWorld(s *setting, sched schedule) (*world, error) {
	w := &world{setting: s, schedule: sched, record: &record{}, writes: map[string]int64{}}
	own := *s
	own.dir = filepath.Join(s.dir, fmt.Sprint(sched.Seed))
	w.setting = &own
	_ = os.RemoveAll(own.dir)
	if err := os.MkdirAll(own.dir, 0o755); err != nil {
		return nil, err
	}
	var err error
	if w.clock, err = newClock(s.warp, filepath.Join(own.dir, "clock")); err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(sched.Seed, 7))
	w.cluster = &fakeCluster{clock: w.clock, namespace: "chaos", since: map[string]int64{}, sets: map[string]string{}}
	w.useServer()
	st := w.cluster.store
	w.cluster.deploy(controlledName, bounds.MinReplicas, "200m")
	w.cluster.deploy(watchedName, bounds.MinReplicas, "200m")
	recommender := pick(random, []string{"threshold", "hpa", "feedforward"})
	st.create(mpas, makeMPA(w.cluster.namespace, controlledName, "Auto", recommender, w.clock.stamp()))
	st.create(mpas, makeMPA(w.cluster.namespace, watchedName, "Off", recommender, w.clock.stamp()))
	for _, f := range sched.Faults {
		if f.Kind == crash {
			w.crashes = append(w.crashes, f)
		}
	}
	names := []string{"a"}
	if sched.Lease {
		names = append(names, "b")
	}
	return w, w.join(names)
}

func (w *world) useServer() {
	if w.server == nil {
		own := newStore()
		w.cluster.store, w.backend = own, &apiServer{own, w.clock}
		return
	}
	w.cluster.namespace = fmt.Sprintf("chaos-%d-%d-%d", w.schedule.Seed, os.Getpid(), w.server.namespaces.Add(1))
	w.server.prepare(w.cluster.namespace)
	w.cluster.store, w.backend = w.server, w.server.handler()
}

// One door of Prometheus for all, one of the API server for each, so that writers are told apart.
func (w *world) join(names []string) error {
	measured := newGate(w.clock, prometheus, &fakePrometheus{w.cluster, w.clock, w.schedule.Loads}, w.record, &w.schedule, 1)
	address, end, err := measured.listen(nil)
	if err != nil {
		return err
	}
	w.endings = append(w.endings, end)
	for i, name := range names {
		if err := w.addController(name, "http://"+address, uint64(i)+2); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) addController(name, prometheusURL string, salt uint64) error {
	c := &controller{name: name, dir: w.dir, clock: w.clock, random: rand.New(rand.NewPCG(w.schedule.Seed, 100+salt)),
		env: []string{"LD_PRELOAD=" + w.preload, "CHAOS_CLOCK=" + w.clock.file}}
	g := newGate(w.clock, api, w.backend, w.record, &w.schedule, salt)
	if w.server != nil { // whose etcd is a real one
		g.faults = slices.DeleteFunc(g.faults, func(f fault) bool { return f.Kind == etcd })
	}
	g.kill, g.onWrite = c.kill, w.onWrite
	address, end, err := g.listen(&w.certificate)
	if err != nil {
		return err
	}
	c.config = func(life string) []byte { return w.kubeconfig("https://"+address, life) }
	c.args = []string{"--prometheus-url=" + prometheusURL, "--namespace=" + w.cluster.namespace,
		"--history=0s", "--learn-history=0s", "--learn=false", "--policy=off", "--listen=off",
		"--lease-namespace=" + w.cluster.namespace, fmt.Sprintf("--leader-elect=%t", w.schedule.Lease)}
	w.gates, w.controllers, w.endings = append(w.gates, g), append(w.controllers, c), append(w.endings, end)
	return nil
}

func (w *world) kubeconfig(server, token string) []byte {
	config := object{"apiVersion": "v1", "kind": "Config", "current-context": "chaos",
		"clusters": []any{object{"name": "chaos", "cluster": object{"server": server,
			"certificate-authority-data": base64.StdEncoding.EncodeToString(w.authority)}}},
		"users":    []any{object{"name": "chaos", "user": object{"token": token}}},
		"contexts": []any{object{"name": "chaos", "context": object{"cluster": "chaos", "user": "chaos"}}}}
	out, _ := json.Marshal(config)
	return out
}

// --- host faults ------------------------------------------------------------------------------------

func kindOfWrite(path string) string {
	for _, kind := range []string{"/scale", "/resize", "/status", "/events", "/leases"} {
		if strings.HasSuffix(path, kind) || strings.Contains(path, kind+"/") {
			return kind[1:]
		}
	}
	return "other"
}

// Whether the writer is to die at this write, and when in it.
func (w *world) onWrite(e entry) string {
	w.diskMu.Lock()
	defer w.diskMu.Unlock()
	for i := range w.crashes {
		f := &w.crashes[i]
		if e.At < f.At || e.At >= f.At+f.For || f.Amount <= 0 || (f.Class != "any write" && f.Class != kindOfWrite(e.Path)) {
			continue
		}
		if f.Amount--; f.Amount == 0 {
			return f.Stage
		}
	}
	return ""
}

func (w *world) fillDisk(f fault) {
	var size int64
	for _, c := range w.controllers {
		if about, err := os.Stat(c.journal()); err == nil {
			size = max(size, about.Size())
		}
	}
	w.diskMu.Lock()
	if w.fullAt == 0 {
		w.fullAt = w.clock.now()
	}
	w.diskMu.Unlock()
	_ = w.clock.tell(size + f.Amount)
}

// The real one is killed. Ours is cut off; without etcd, its gates tell that its requests time out.
func (w *world) stopServer(f fault) {
	switch {
	case w.server != nil:
		w.server.control("stop", serverOf[f.Kind])
	case f.Kind == down:
		for _, g := range w.gates {
			g.cutAll(true)
		}
	}
}

func (w *world) startServer(f fault) {
	switch {
	case w.server != nil:
		w.server.control("start", serverOf[f.Kind])
		w.late(f)
	case f.Kind == down:
		if f.At%2 == 0 {
			w.cluster.store.forgetHistory()
		}
		for _, g := range w.gates {
			g.open()
		}
	}
}

var serverOf = map[string]string{down: "kube-apiserver", etcd: "etcd"}

// A real server starts as fast as it can, not ten times as fast: its fault ends when it is there.
func (w *world) late(f fault) {
	w.diskMu.Lock()
	defer w.diskMu.Unlock()
	w.schedule.Quiet = max(w.schedule.Quiet, w.clock.now()+1000)
}

func (w *world) quiet() int64 {
	w.diskMu.Lock()
	defer w.diskMu.Unlock()
	return w.schedule.Quiet
}

func (w *world) begin(f fault) {
	switch f.Kind {
	case down, etcd:
		w.stopServer(f)
	case clockJump:
		w.clock.jump.Add(f.Amount)
		_ = w.clock.tell(-1)
	case diskFull:
		w.fillDisk(f)
	case outOfMemory:
		pick(rand.New(rand.NewPCG(w.schedule.Seed, 3)), w.controllers).limitMemory(uint64(f.Amount))
	case lostPod:
		w.cluster.losePod(int(f.Amount))
	default:
		if f.Side == api && (f.Class == "all" || f.Class == "watch") && f.At%2 == 0 {
			for _, g := range w.gates { // so that new watches meet it too
				g.cutAll(false)
			}
		}
	}
}

func (w *world) finish(f fault) {
	switch f.Kind {
	case down, etcd:
		w.startServer(f)
	case diskFull:
		_ = w.clock.tell(-1)
	case outOfMemory:
		for _, c := range w.controllers {
			c.freeMemory()
		}
	}
}

func (w *world) play(ctx context.Context, f fault) {
	if !w.clock.sleep(ctx, f.At-w.clock.now()) {
		return
	}
	w.begin(f)
	w.clock.sleep(ctx, f.At+f.For-w.clock.now())
	w.finish(f)
}

// --- the schedule -----------------------------------------------------------------------------------

type outcome struct {
	Seed       uint64
	Violations []violation
	Counts     map[string]int
	RecoveryMs int64
	PeakKiB    int64
	Lag        time.Duration
}

// Who restarts the real server has it alone; the others share it. Returns how to give it back.
func (s *setting) takeServer(sched schedule) func() {
	if s.server == nil {
		return func() {}
	}
	if slices.ContainsFunc(sched.Faults, func(f fault) bool { return serverOf[f.Kind] != "" }) {
		s.server.alone.Lock()
		return s.server.alone.Unlock
	}
	s.server.alone.RLock()
	return s.server.alone.RUnlock
}

func runSchedule(s *setting, sched schedule) (outcome, error) {
	defer s.takeServer(sched)()
	w, err := newWorld(s, sched)
	if err != nil {
		return outcome{}, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go w.lag.watch(ctx)
	go w.cluster.run(ctx)
	var faults sync.WaitGroup
	faults.Add(len(sched.Faults))
	for _, f := range sched.Faults {
		go func() {
			defer faults.Done()
			w.play(ctx, f)
		}()
	}
	live, end := context.WithCancel(ctx)
	var controllers sync.WaitGroup
	for _, c := range w.controllers {
		controllers.Add(1)
		go func() {
			defer controllers.Done()
			if err := c.run(live, w.program); err != nil {
				fmt.Fprintln(os.Stderr, "chaos:", err)
				os.Exit(2)
			}
		}()
	}
	faults.Wait()
	w.clock.sleep(ctx, w.quiet()-w.clock.now())
	recovered := w.awaitRecovery(ctx)
	end()
	controllers.Wait()
	for _, f := range w.endings {
		f()
	}
	if w.server != nil {
		w.server.clear(w.cluster.namespace)
	}
	return w.judge(recovered), nil
}

// Since when both MPAs are followed again, with a decision after the faults; -1: they never were.
func (w *world) awaitRecovery(ctx context.Context) int64 {
	w.lag.reset()
	for w.clock.sleep(ctx, 250) {
		now := w.clock.now()
		if now > w.quiet()+2*endsMs+w.lag.get().Milliseconds()*w.warp {
			return -1
		}
		if w.isFollowed(controlledName) && w.isFollowed(watchedName) {
			return now
		}
	}
	return -1
}

func (w *world) isFollowed(name string) bool {
	mpa := w.cluster.store.get(mpas, w.cluster.namespace+"/"+name)
	decided, err := time.Parse(time.RFC3339, text(mpa, "status", "lastDecision", "time"))
	quiet := w.clock.wall(w.schedule.Quiet + w.clock.jump.Load())
	return err == nil && !decided.Before(quiet.Truncate(time.Second)) && conditionIs(mpa, "Ready", "True")
}

func conditionIs(mpa object, kind, status string) bool {
	list, _ := at(mpa, "status", "conditions").([]any)
	return slices.ContainsFunc(list, func(c any) bool { return text(c, "type") == kind && text(c, "status") == status })
}

// --- afterwards -------------------------------------------------------------------------------------

func (w *world) judge(recovered int64) outcome {
	h := history{Rules: bounds, Replicas: bounds.MinReplicas, Entries: w.record.all(), Quiet: w.schedule.Quiet,
		Recovered: recovered, Lease: w.schedule.Lease, FullAt: w.fullAt}
	h.GraceMs = graceMs + w.lag.get().Milliseconds()*w.warp
	for _, c := range w.controllers {
		h.Lives = append(h.Lives, c.lives...)
		h.Journals = append(h.Journals, readJournal(c.journal()))
	}
	out := outcome{Seed: w.schedule.Seed, Violations: check(h), Counts: h.counts(), RecoveryMs: recovered - w.schedule.Quiet, Lag: w.lag.get()}
	for _, l := range h.Lives {
		out.PeakKiB = max(out.PeakKiB, l.PeakKiB)
	}
	for i, c := range w.controllers {
		if len(h.Journals[i].Decisions) == 0 {
			continue // it stood by
		}
		if why := w.replay(c.journal()); why != "" {
			out.Violations = append(out.Violations, violation{"journal repeated", why})
		}
	}
	if len(out.Violations) == 0 {
		_ = os.RemoveAll(w.dir)
	} else {
		h.write(filepath.Join(w.dir, "history.json"))
	}
	return out
}

// What the journal has must be repeated with the same result.
func (w *world) replay(journal string) string {
	said, err := exec.Command(w.mpactl, "replay", journal).CombinedOutput()
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%v: %s", err, strings.TrimSpace(string(said)))
}
