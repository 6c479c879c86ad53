package main

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	serviceS  = 0.005 // CPU seconds of a request
	wavePart  = 10    // one function in so many has a load that changes by itself
	waveS     = 1200.0
	steadyUse = 0.62 // of the CPU that two pods of 200m request: a goal of 70 % is kept
	startCPU  = 0.4
	memory    = 48 << 20
)

var bounds = [...]float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, math.Inf(1)}

type pod struct {
	namespace, name, app string
	request              float64 // cores
	lines                []string
	buckets              [len(bounds)]float64
	usage, cpu           float64 // cores, and seconds of them
	periods, throttled   float64
}

// A function is what has one label app: its pods share its load.
type function struct {
	pods   map[string]*pod
	factor float64 // by /step
	phase  float64
	waves  bool
}

type fleet struct {
	mutex     sync.Mutex
	functions map[string]*function
	pods      map[string]*pod
	last      time.Time
}

func newFleet() *fleet {
	return &fleet{functions: map[string]*function{}, pods: map[string]*pod{}}
}

func newFunction(app string) *function {
	hash := fnv.New32a()
	hash.Write([]byte(app))
	sum := hash.Sum32()
	return &function{pods: map[string]*pod{}, factor: 1, waves: sum%wavePart == 0, phase: float64(sum%1009) / 1009}
}

func (f *function) load(now time.Time) float64 {
	if !f.waves {
		return steadyUse * startCPU * f.factor
	}
	turn := float64(now.UnixMilli()) / 1000 / waveS
	return steadyUse * startCPU * f.factor * (1 + 0.4*math.Sin(2*math.Pi*(turn+f.phase)))
}

func newPod(namespace, name, app string) *pod {
	labels := fmt.Sprintf(`{namespace=%q,pod=%q`, namespace, name)
	p := &pod{namespace: namespace, name: name, app: app}
	for _, bound := range bounds {
		le := strconv.FormatFloat(bound, 'g', -1, 64)
		p.lines = append(p.lines, fmt.Sprintf(`http_request_duration_seconds_bucket%s,le=%q} `, labels, le))
	}
	for _, metric := range []string{"cpu_usage_seconds_total", "cpu_cfs_periods_total", "cpu_cfs_throttled_periods_total",
		"memory_working_set_bytes"} {
		p.lines = append(p.lines, fmt.Sprintf(`container_%s%s,container="function"} `, metric, labels))
	}
	return p
}

func (f *fleet) put(namespace, name, app string, request float64) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	p := f.pods[name]
	if p == nil {
		p = newPod(namespace, name, app)
		f.pods[name] = p
		if f.functions[app] == nil {
			f.functions[app] = newFunction(app)
		}
		f.functions[app].pods[name] = p
	}
	p.request = request
}

func (f *fleet) drop(name string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	p := f.pods[name]
	if p == nil {
		return
	}
	delete(f.pods, name)
	of := f.functions[p.app]
	delete(of.pods, name)
	if len(of.pods) == 0 {
		delete(f.functions, p.app)
	}
}

// One core's queue: the mean time grows as its CPU is used up.
func (p *pod) run(cores, seconds float64) {
	p.usage = math.Min(cores, p.request)
	use := math.Min(cores/p.request, 0.98)
	mean := serviceS / (1 - use)
	requests := p.usage / serviceS * seconds
	for i, bound := range bounds {
		p.buckets[i] += requests * (1 - math.Exp(-bound/mean))
	}
	p.cpu += p.usage * seconds
	p.periods += 10 * seconds
	if use > 0.9 {
		p.throttled += 10 * seconds * (use - 0.9) * 5
	}
}

func (f *fleet) advance(now time.Time) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	seconds := now.Sub(f.last).Seconds()
	if f.last.IsZero() || seconds <= 0 {
		seconds = 1
	}
	f.last = now
	for _, function := range f.functions {
		each := function.load(now) / float64(len(function.pods))
		for _, p := range function.pods {
			p.run(each, seconds)
		}
	}
}

func (f *fleet) expose(w http.ResponseWriter, _ *http.Request) {
	out := bufio.NewWriterSize(w, 1<<20)
	defer out.Flush()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, p := range f.pods {
		values := append(p.buckets[:], p.cpu, p.periods, p.throttled, memory)
		for i, line := range p.lines {
			out.WriteString(line)
			out.Write(strconv.AppendFloat(out.AvailableBuffer(), values[i], 'g', 12, 64))
			out.WriteByte('\n')
		}
	}
}

func (f *fleet) count(w http.ResponseWriter, _ *http.Request) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	fmt.Fprintln(w, len(f.pods))
}

// POST /step?app=NAME&app=…&factor=1.8 tells when it was done, in Unix seconds.
func (f *fleet) step(w http.ResponseWriter, r *http.Request) {
	factor, err := strconv.ParseFloat(r.FormValue("factor"), 64)
	if err != nil || !(factor > 0 && factor < 100) {
		http.Error(w, "factor must be a number above 0 and below 100", http.StatusBadRequest)
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, app := range r.Form["app"] {
		function := f.functions[app]
		if function == nil {
			http.Error(w, "no pods of "+app, http.StatusNotFound)
			return
		}
		function.factor = factor
	}
	fmt.Fprintf(w, "%.3f\n", float64(time.Now().UnixMilli())/1000)
}
