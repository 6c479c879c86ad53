package main

import (
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

func mustParse(t *testing.T, source string) trace {
	t.Helper()
	parsed, err := loadTrace(source, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestInlineTrace(t *testing.T) {
	got := mustParse(t, "10@30s, 10-40@1m,0@500ms")
	want := trace{{10, 10, 30 * time.Second}, {10, 40, time.Minute}, {0, 0, 500 * time.Millisecond}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got.requests() != 300+1500 || got.length() != 90500*time.Millisecond {
		t.Errorf("got %v requests in %v", got.requests(), got.length())
	}
}

func TestBadInlineTrace(t *testing.T) {
	for _, source := range []string{"@", "10@", "@1s", "10@1", "10@-1s", "10@0s", "-5@1s", "a@1s",
		"1-@1s", "1-2-3@1s", "NaN@1s", "Inf@1s", "10@1s,", "1@2s@3s"} {
		if got, err := loadTrace(source, time.Second); err == nil {
			t.Errorf("%q: got %v, want an error", source, got)
		}
	}
}

func writeTrace(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTraceFile(t *testing.T) {
	got, err := loadTrace(writeTrace(t, "# rates\n1\n\n2.5\n0\n"), 2*time.Second)
	want := trace{{1, 1, 2 * time.Second}, {2.5, 2.5, 2 * time.Second}, {0, 0, 2 * time.Second}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, text := range []string{"", "# none\n", "1\n-2\n", "1 2\n"} {
		if got, err := loadTrace(writeTrace(t, text), time.Second); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
	if _, err := loadTrace(filepath.Join(t.TempDir(), "none"), time.Second); err == nil {
		t.Error("a missing file gives no error")
	}
}

func TestBound(t *testing.T) {
	got, cut := mustParse(t, "10@10s,100@10s,0-80@10s,7@1s").bound(0.5, 40, 25*time.Second)
	want := trace{{5, 5, 10 * time.Second}, {40, 40, 10 * time.Second}, {0, 20, 5 * time.Second}}
	if cut != 1 || !slices.Equal(got, want) {
		t.Errorf("got %v with %d cut, want %v", got, cut, want)
	}
}

func TestPacerFollowsTrace(t *testing.T) {
	p := &tracePacer{trace: mustParse(t, "10@10s,0@5s,0-20@10s,20-0@10s,4@1s")}
	perStep := make([]int, len(p.trace))
	previous := time.Duration(-1)
	hits := uint64(0)
	for {
		due, ok := p.due(hits)
		if !ok {
			break
		}
		if due <= previous {
			t.Fatalf("request %d is due at %v, not after %v", hits, due, previous)
		}
		index, _ := p.at(due)
		perStep[index]++
		previous = due
		hits++
	}
	if want := []int{100, 0, 100, 100, 4}; !slices.Equal(perStep, want) {
		t.Errorf("requests per step: got %v, want %v", perStep, want)
	}
	// Half the time of a ramp from zero holds a quarter of its requests.
	if due, _ := p.due(125); math.Abs(due.Seconds()-20) > 0.1 {
		t.Errorf("request 125 is due at %v, want about 20s", due)
	}
}

func TestPaceWaitsOrCatchesUp(t *testing.T) {
	p := &tracePacer{trace: mustParse(t, "10@1s")}
	if wait, stop := p.Pace(0, 0); wait != 50*time.Millisecond || stop {
		t.Errorf("first: got %v, %v", wait, stop)
	}
	if wait, stop := p.Pace(400*time.Millisecond, 2); wait != 0 || stop {
		t.Errorf("late: got %v, %v", wait, stop)
	}
	if p.lag != 150*time.Millisecond {
		t.Errorf("lag: got %v", p.lag)
	}
	if _, stop := p.Pace(time.Second, 10); !stop {
		t.Error("does not stop after the last request")
	}
}

func TestPoissonTimes(t *testing.T) {
	o := options{poisson: true, seed: 7}
	p := o.pacer(mustParse(t, "100@100s,0@50s,100@100s"))
	var gaps []float64
	var previous time.Duration
	for hits := uint64(0); ; hits++ {
		due, ok := p.due(hits)
		if !ok {
			break
		}
		if again, _ := p.due(hits); again != due {
			t.Fatalf("request %d is due at %v and at %v", hits, due, again)
		}
		if due > 100*time.Second && due < 150*time.Second {
			t.Fatalf("request %d falls into the pause", hits)
		}
		gaps = append(gaps, (due - previous).Seconds())
		previous = due
	}
	// 20,000 are expected, with a standard deviation of 141.
	if n := float64(len(gaps)); math.Abs(n-20000) > 5*141 {
		t.Errorf("got %v requests", n)
	}
	// The share of exponential gaps of mean 10 ms that are longer than 10 ms is 1/e.
	long := 0
	for _, gap := range gaps {
		if gap > 0.01 {
			long++
		}
	}
	if share := float64(long) / float64(len(gaps)); math.Abs(share-1/math.E) > 0.02 {
		t.Errorf("share of long gaps: %v", share)
	}
	if first, _ := o.pacer(p.trace).due(0); first != time.Duration(gaps[0]*1e9) {
		t.Errorf("the same seed gives %v, and gave %v s", first, gaps[0])
	}
}

func TestTargetsAreMixed(t *testing.T) {
	o := options{targets: []string{"a", "b"}, seed: 1}
	next, count := o.targeter(), map[string]int{}
	for range 1000 {
		var target vegeta.Target
		if err := next(&target); err != nil {
			t.Fatal(err)
		}
		count[target.URL]++
	}
	if len(count) != 2 || math.Abs(float64(count["a"])-500) > 100 {
		t.Errorf("got %v", count)
	}
}

func TestSamplesFile(t *testing.T) {
	r := newReport(mustParse(t, "1@10s"), time.Unix(100, 0))
	r.add(&vegeta.Result{Timestamp: time.Unix(102, 0), Latency: 1500 * time.Microsecond, Code: 503,
		Error: "503"})
	r.add(&vegeta.Result{Timestamp: time.Unix(101, 5e8), Latency: time.Second, Code: 200, URL: "a",
		Headers: http.Header{"Server-Timing": {"cpu;dur=1"}}})
	name := filepath.Join(t.TempDir(), "samples")
	if err := r.writeSamples(name); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(name)
	if want := "1.500000 1000.000 200 a cpu;dur=1\n2.000000 1.500 503  \n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestGuard(t *testing.T) {
	for _, allowed := range []string{"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1",
		"192.0.2.1", "198.51.100.255", "203.0.113.7"} {
		if err := checkAddress(netip.MustParseAddr(allowed)); err != nil {
			t.Error(err)
		}
	}
	for _, refused := range []string{"10.0.0.1", "192.0.3.1", "198.51.101.1", "8.8.8.8", "0.0.0.0",
		"::", "169.254.169.254", "2001:db8::1", "::ffff:10.0.0.1"} {
		if checkAddress(netip.MustParseAddr(refused)) == nil {
			t.Errorf("%s is allowed", refused)
		}
	}
	for _, target := range []string{"", "localhost", "ftp://127.0.0.1/", "https://127.0.0.1/",
		"http://", "http://10.0.0.1/", "http://127.0.0.1@10.0.0.1/", "http://0/"} {
		if checkTarget(target) == nil {
			t.Errorf("%q is allowed", target)
		}
	}
}

func TestClientRefusesToDialElsewhere(t *testing.T) {
	_, err := newClient(time.Second, true).Get("http://10.255.255.1/")
	if err == nil || !strings.Contains(err.Error(), "documentation") {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestQuantile(t *testing.T) {
	l := latencies{4e6, 1e6, 3e6, 2e6}
	if l.quantile(0.5) != 2 || l.quantile(0.99) != 4 || l.quantile(1) != 4 {
		t.Errorf("got %v, %v, %v", l.quantile(0.5), l.quantile(0.99), l.quantile(1))
	}
	if (latencies{}).quantile(0.5) != 0 {
		t.Error("nothing has a quantile")
	}
}

func TestHost(t *testing.T) {
	var asked atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked.Store(r.Host) }))
	defer server.Close()

	o := options{targets: []string{server.URL}, host: "f.example.com", maxRate: 10, timeout: time.Second}
	o.attack(mustParse(t, "10@100ms"), io.Discard)
	if asked.Load() != "f.example.com" {
		t.Errorf("asked for %v", asked.Load())
	}
}

func TestAttackSendsAllRequests(t *testing.T) {
	var served atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if served.Add(1)%10 == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()

	o := options{targets: []string{server.URL}, maxRate: 500, timeout: time.Second, noKeepAlive: true}
	r := o.attack(mustParse(t, "50@1s,0@200ms,100@500ms"), io.Discard)
	if r.Requests != 100 || served.Load() != 100 || r.Errors != 10 {
		t.Errorf("sent %d, served %d, failed %d", r.Requests, served.Load(), r.Errors)
	}
	if r.Steps[1].Requests != 0 || r.Steps[0].Requests+r.Steps[2].Requests != 100 {
		t.Errorf("steps: %+v", r.Steps)
	}
}

func tellCPU(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.URL.Query().Get("n"))
	w.Header().Set("Server-Timing", fmt.Sprintf("cpu;dur=%.3f, pod;desc=p", float64(n)/500))
}

func TestCallsAreSized(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(tellCPU))
	defer server.Close()
	sized, err := sizeCall(newClient(time.Second, true), server.URL+"/sentiment?n=7&x=1", "", 12)
	if err != nil || sized != server.URL+"/sentiment?n=6000&x=1" {
		t.Errorf("%q, %v", sized, err)
	}

	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	if _, err := sizeCall(newClient(time.Second, true), plain.URL, "", 12); err == nil ||
		!strings.Contains(err.Error(), "Server-Timing") {
		t.Errorf("%v", err)
	}
}

func TestCallsAreSizedOnceSomebodyListens(t *testing.T) {
	place, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := place.Addr().String()
	place.Close()
	server := &http.Server{Handler: http.HandlerFunc(tellCPU)}
	defer server.Close()
	time.AfterFunc(500*time.Millisecond, func() {
		if late, err := net.Listen("tcp", address); err == nil {
			server.Serve(late)
		}
	})
	sized, err := sizeCall(newClient(time.Second, true), "http://"+address+"/sentiment", "", 12)
	if err != nil || sized != "http://"+address+"/sentiment?n=6000" {
		t.Errorf("%q, %v", sized, err)
	}
}
