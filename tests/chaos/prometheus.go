package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
)

// A step of the load: from a time on, so many cores are asked for.
type load struct {
	At    int64
	Cores float64
}

const requestsPerCore = 20

// Prometheus, as it would answer of pods that share a load: the queries are told by the metric they name.
type fakePrometheus struct {
	cluster *fakeCluster
	clock   *clock
	loads   []load
}

func makeLoads(random *rand.Rand, until int64) []load {
	var out []load
	for t := int64(0); t < until; t += 8000 + random.Int64N(22000) {
		out = append(out, load{t, 0.05 + 4*random.Float64()})
	}
	return out
}

func (p *fakePrometheus) cores() float64 {
	now, cores := p.clock.now(), 0.0
	for _, l := range p.loads {
		if l.At <= now {
			cores = l.Cores
		}
	}
	return cores
}

type serving struct {
	name            string
	limit, used     float64
	busy, perSecond float64
}

func (p *fakePrometheus) serving(name string) []serving {
	var out []serving
	for _, pod := range p.cluster.podsOf(name) {
		list, _ := at(pod, "status", "containerStatuses").([]any)
		for _, c := range list {
			limit := float64(milli(text(c, "resources", "limits", "cpu"))) / 1000
			out = append(out, serving{name: text(pod, "metadata", "name"), limit: limit})
		}
	}
	share := p.cores() / float64(max(len(out), 1))
	for i := range out {
		out[i].used = min(share, out[i].limit)
		out[i].busy = share / out[i].limit
		out[i].perSecond = share * requestsPerCore
	}
	return out
}

// The share of requests within a bound: near its limit a function is slow.
func within(seconds, busy float64) float64 {
	typical := 0.08
	if busy > 0.8 {
		typical += (busy - 0.8) * 3
	}
	return min(1, seconds/typical/3)
}

func (p *fakePrometheus) sample(labels string, value float64) string {
	return fmt.Sprintf(`{"metric":{"namespace":"%s",%s},"value":[%.3f,"%g"]}`, p.cluster.namespace, labels,
		float64(p.clock.wall(p.clock.now()).UnixMilli())/1000, value)
}

func (p *fakePrometheus) samples(query string) []string {
	var out []string
	for _, name := range []string{controlledName, watchedName} {
		for _, s := range p.serving(name) {
			pod := fmt.Sprintf(`"pod":"%s"`, s.name)
			inside := pod + `,"container":"function"`
			switch {
			case strings.Contains(query, "duration_seconds_bucket"):
				for _, le := range []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5} {
					out = append(out, p.sample(fmt.Sprintf(`%s,"le":"%g"`, pod, le), s.perSecond*within(le, s.busy)))
				}
				out = append(out, p.sample(pod+`,"le":"+Inf"`, s.perSecond))
			case strings.Contains(query, "cfs_throttled"):
				out = append(out, p.sample(inside, min(1, max(0, s.busy-0.8))))
			case strings.Contains(query, "cpu_usage"):
				out = append(out, p.sample(inside, s.used))
			case strings.Contains(query, "memory"):
				out = append(out, p.sample(inside, 50e6))
			}
		}
	}
	return out
}

func (p *fakePrometheus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/api/v1/query" {
		http.Error(w, "there is only /api/v1/query here", 404)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`,
		strings.Join(p.samples(r.FormValue("query")), ","))
}
