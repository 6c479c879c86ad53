package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

type latencies []time.Duration

// quantile is the latency that a share of the requests did not exceed, in ms.
func (l latencies) quantile(share float64) float64 {
	if len(l) == 0 {
		return 0
	}
	slices.Sort(l)
	rank := int(math.Ceil(share*float64(len(l)))) - 1
	return float64(l[max(0, rank)].Microseconds()) / 1e3
}

type stepReport struct {
	StartSeconds float64 `json:"start_s"`
	WantedRate   float64 `json:"wanted_rate"`
	Requests     int     `json:"requests"`
	Errors       int     `json:"errors"`
	P50          float64 `json:"p50_ms"`
	P99          float64 `json:"p99_ms"`
	latencies    latencies
}

type sample struct {
	sent, latency time.Duration
	status        uint16 // 0: no answer
	url, timing   string // timing: the header Server-Timing of the answer
}

type report struct {
	Requests int            `json:"requests"`
	Errors   int            `json:"errors"`
	Rate     float64        `json:"rate"`
	P50      float64        `json:"p50_ms"`
	P90      float64        `json:"p90_ms"`
	P99      float64        `json:"p99_ms"`
	Max      float64        `json:"max_ms"`
	Lag      float64        `json:"max_lag_ms"`
	Reasons  map[string]int `json:"error_reasons,omitempty"`
	Steps    []stepReport   `json:"steps"`

	trace   trace
	begin   time.Time
	last    time.Duration
	recent  latencies
	samples []sample
}

func newReport(t trace, begin time.Time) *report {
	r := &report{trace: t, begin: begin, Reasons: map[string]int{}}
	var start time.Duration
	for _, s := range t {
		r.Steps = append(r.Steps,
			stepReport{StartSeconds: start.Seconds(), WantedRate: (s.from + s.to) / 2})
		start += s.length
	}
	return r
}

// add counts a failed request with its latency too: a timeout is an answer that came too late.
func (r *report) add(result *vegeta.Result) {
	sent := result.Timestamp.Sub(r.begin)
	r.last = max(r.last, sent)
	index, _ := r.trace.at(sent)
	s := &r.Steps[index]
	s.latencies = append(s.latencies, result.Latency)
	r.recent = append(r.recent, result.Latency)
	r.samples = append(r.samples, sample{sent, result.Latency, result.Code,
		result.URL, result.Headers.Get("Server-Timing")})
	r.Requests++
	if result.Error != "" {
		s.Errors++
		r.Errors++
		r.Reasons[reason(result.Error)]++
	}
}

// reason drops the addresses before the cause, which make each error look like another.
func reason(text string) string {
	return strings.TrimSpace(text[strings.LastIndex(text, ": ")+1:])
}

// progress tells of the requests answered since it was last called.
func (r *report) progress(out io.Writer, since time.Duration) {
	fmt.Fprintf(out, "%6.0fs %7.1f/s  p50 %8.1f ms  p99 %8.1f ms  errors %d\n",
		time.Since(r.begin).Seconds(), float64(len(r.recent))/since.Seconds(),
		r.recent.quantile(0.5), r.recent.quantile(0.99), r.Errors)
	r.recent = r.recent[:0]
}

func (r *report) finish(lag time.Duration) {
	var all latencies
	for i := range r.Steps {
		s := &r.Steps[i]
		s.Requests = len(s.latencies)
		s.P50, s.P99 = s.latencies.quantile(0.5), s.latencies.quantile(0.99)
		all = append(all, s.latencies...)
	}
	r.Rate = float64(r.Requests) / max(r.last, r.trace.length()).Seconds()
	r.P50, r.P90, r.P99 = all.quantile(0.5), all.quantile(0.9), all.quantile(0.99)
	r.Max = all.quantile(1)
	r.Lag = float64(lag.Microseconds()) / 1e3
}

// writeSamples writes a line per request, in the order in which they were sent.
func (r *report) writeSamples(name string) error {
	var text bytes.Buffer
	slices.SortFunc(r.samples, func(a, b sample) int { return cmp.Compare(a.sent, b.sent) })
	for _, s := range r.samples {
		fmt.Fprintf(&text, "%.6f %.3f %d %s %s\n", s.sent.Seconds(),
			float64(s.latency.Microseconds())/1e3, s.status, s.url, s.timing)
	}
	return os.WriteFile(name, text.Bytes(), 0o644)
}
