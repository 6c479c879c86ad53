package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// A write, as it came to the door of the API server.
type entry struct {
	At, Answered       int64 // ms of the schedule; 0: no answer was sent
	Life               string
	Method, Path, Body string
	Taken              bool   // the API server carried it out
	Status             int    // that was sent as an answer
	Spoiled            string // by which fault
}

type record struct {
	mu      sync.Mutex
	entries []*entry
}

func (r *record) add(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append(r.entries, e)
}

func (r *record) all() []entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]entry, len(r.entries))
	for i, e := range r.entries {
		out[i] = *e
	}
	return out
}

func (r *record) set(e *entry, change func(*entry)) {
	if e == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	change(e)
}

// A door between a controller and a server, with faults.
type gate struct {
	clock   *clock
	side    string
	backend http.Handler
	record  *record
	faults  []fault
	onWrite func(e entry) string // the stage at which the writer is to die, or ""
	kill    func()               //
	mu      sync.Mutex
	random  *rand.Rand
	conns   map[net.Conn]bool
	closed  bool // as a server that is not there
}

func newGate(c *clock, side string, backend http.Handler, rec *record, s *schedule, salt uint64) *gate {
	g := &gate{clock: c, side: side, backend: backend, record: rec, conns: map[net.Conn]bool{},
		random:  rand.New(rand.NewPCG(s.Seed, salt)),
		onWrite: func(entry) string { return "" }, kill: func() {}}
	for _, f := range s.Faults {
		if f.Side == side || (side == api && f.Kind == etcd) {
			g.faults = append(g.faults, f)
		}
	}
	return g
}

func (g *gate) chance(share float64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.random.Float64() < share
}

func (g *gate) between(n int64) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.random.Int64N(n)
}

func classOf(r *http.Request, side string) string {
	switch {
	case side == prometheus:
		return "query"
	case r.Method != "GET":
		return "write"
	case r.URL.Query().Get("watch") != "":
		return "watch"
	}
	return "list"
}

// etcd's trouble is everybody's, but watches are served from memory.
func (f fault) concerns(class string, now int64) bool {
	if now < f.At || now >= f.At+f.For {
		return false
	}
	if f.Kind == etcd {
		return class != "watch"
	}
	return f.Class == "all" || f.Class == class
}

func (g *gate) faultOf(class string) *fault {
	now := g.clock.now()
	for i := range g.faults {
		f := &g.faults[i]
		if f.concerns(class, now) && (f.Kind == etcd || g.chance(f.Share)) {
			return f
		}
	}
	return nil
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	class := classOf(r, g.side)
	if g.isClosed() {
		g.cut(r)
	}
	var e *entry
	stage := ""
	if class == "write" {
		e = &entry{At: g.clock.now(), Life: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), Method: r.Method, Path: r.URL.Path, Body: string(body)}
		g.record.add(e)
		stage = g.onWrite(*e)
	}
	if stage != "" {
		g.die(w, r, e, stage)
	} else if f := g.faultOf(class); f != nil {
		g.record.set(e, func(e *entry) { e.Spoiled = f.Kind })
		g.spoil(w, r, e, class, *f)
	} else {
		g.pass(w, r, e, class)
	}
}

// --- the honest way ---------------------------------------------------------------------------------

func (g *gate) pass(w http.ResponseWriter, r *http.Request, e *entry, class string) {
	if class == "watch" {
		g.backend.ServeHTTP(&spoiledStream{ResponseWriter: w, gate: g, request: r}, r)
		return
	}
	g.send(w, g.ask(r, e), e)
}

func (g *gate) ask(r *http.Request, e *entry) *httptest.ResponseRecorder {
	got := httptest.NewRecorder()
	// What a server has read it does, even if whoever asked is gone.
	g.backend.ServeHTTP(got, r.WithContext(context.WithoutCancel(r.Context())))
	g.record.set(e, func(e *entry) { e.Taken = got.Code < 300 })
	return got
}

func (g *gate) send(w http.ResponseWriter, got *httptest.ResponseRecorder, e *entry) {
	g.record.set(e, func(e *entry) { e.Status, e.Answered = got.Code, g.clock.now() })
	for k, v := range got.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(got.Code)
	_, _ = w.Write(got.Body.Bytes())
}

// The writer is killed around this write.
func (g *gate) die(w http.ResponseWriter, r *http.Request, e *entry, stage string) {
	g.record.set(e, func(e *entry) { e.Spoiled = crash + " " + stage })
	if stage == beforeTaken {
		g.kill()
		g.cut(r)
	}
	got := g.ask(r, e)
	if stage == beforeAnswer {
		g.kill()
		g.cut(r)
	}
	g.send(w, got, e)
	flush(w)
	g.clock.sleep(context.Background(), 10+g.between(100))
	g.kill()
}

// --- faults -----------------------------------------------------------------------------------------

func (g *gate) refuse(w http.ResponseWriter, e *entry, code int, reason, message string) {
	g.record.set(e, func(e *entry) { e.Status, e.Answered = code, g.clock.now() })
	if code == 429 || (code == 503 && g.chance(0.5)) {
		w.Header().Set("Retry-After", fmt.Sprint(1+g.between(4)))
	}
	if g.side == prometheus {
		answer(w, code, object{"status": "error", "errorType": reason, "error": message})
		return
	}
	refuse(w, code, reason, message)
}

func (g *gate) spoil(w http.ResponseWriter, r *http.Request, e *entry, class string, f fault) {
	switch f.Kind {
	case delay:
		g.clock.sleep(r.Context(), f.Amount)
		g.pass(w, r, e, class)
	case reorder:
		g.outOfTurn(w, r, e, class)
	case stall:
		g.clock.sleep(r.Context(), f.At+f.For-g.clock.now())
		g.cut(r)
	case cutBefore:
		g.cut(r)
	case status429:
		g.refuse(w, e, 429, "TooManyRequests", "too many requests, please try again later")
	case status500:
		g.refuse(w, e, 500, "InternalError", "out of cheese")
	case status503:
		g.refuse(w, e, 503, "ServiceUnavailable", "apiserver is shutting down")
	case etcd:
		g.withoutEtcd(w, r, e)
	case status409:
		if class != "write" {
			g.pass(w, r, e, class)
			return
		}
		g.refuse(w, e, 409, "Conflict", "the object has been modified; please apply your changes to the latest version")
	case status410:
		if class == "write" {
			g.pass(w, r, e, class)
			return
		}
		g.refuse(w, e, 410, "Expired", "too old resource version")
	default:
		g.spoilAnswer(w, r, e, class, f)
	}
}

// What was asked first is answered last.
func (g *gate) outOfTurn(w http.ResponseWriter, r *http.Request, e *entry, class string) {
	if class == "watch" || g.chance(0.5) {
		g.clock.sleep(r.Context(), g.between(3000))
		g.pass(w, r, e, class)
		return
	}
	got := g.ask(r, e)
	g.clock.sleep(r.Context(), g.between(3000))
	g.send(w, got, e)
}

func (g *gate) withoutEtcd(w http.ResponseWriter, r *http.Request, e *entry) {
	if g.chance(0.3) {
		g.ask(r, e)
	}
	g.clock.sleep(r.Context(), g.between(7000))
	g.refuse(w, e, 500, "InternalError", "etcdserver: request timed out")
}

var shapes = []string{"[1,2,3]", "null", "7", `"text"`, `{"items":{"a":1},"metadata":7}`, "{}",
	`{"metadata":{"resourceVersion":"9"},"items":7}`, `{"status":"success","data":{"resultType":"matrix","result":{}}}`,
	`{"status":"success","data":{"resultType":"vector","result":[{"metric":7,"value":"x"}]}}`}

const page = "<html><head><title>502</title></head><body><h1>It works!</h1></body></html>"

// The server is asked; what comes of it is not what it said.
func (g *gate) spoilAnswer(w http.ResponseWriter, r *http.Request, e *entry, class string, f fault) {
	whole := []byte(`{"kind":"List"`)
	if class != "watch" {
		whole = g.ask(r, e).Body.Bytes()
	}
	status := 200
	switch f.Kind {
	case cutAfter:
		g.cut(r)
	case status500Did:
		g.refuse(w, e, 500, "InternalError", "the answer was lost on its way")
		return
	case truncate:
		w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
		_, _ = w.Write(whole[:len(whole)/2])
		flush(w)
		g.cut(r)
	case endless:
		g.neverEnd(w, r, f)
	}
	w.Header().Set("Content-Type", "application/json")
	switch f.Kind {
	case shorten:
		whole = whole[:len(whole)/2]
	case garbage:
		whole = []byte("\x00\xff{\"kind\": \"PodList\", \"items\": [{" + strings.Repeat("\xc3\x28", 50))
	case wrongShape:
		whole = []byte(shapes[g.between(int64(len(shapes)))])
	case wrongType:
		w.Header().Set("Content-Type", "text/html")
		whole = []byte(page)
	}
	g.record.set(e, func(e *entry) { e.Status, e.Answered = status, g.clock.now() })
	w.WriteHeader(status)
	_, _ = w.Write(whole)
}

// Until whoever asked has enough of it.
func (g *gate) neverEnd(w http.ResponseWriter, r *http.Request, f fault) {
	_, _ = io.WriteString(w, `{"items":[`)
	filler := []byte(strings.Repeat(`{"metadata":{"name":"x"}},`, 2000))
	for g.clock.now() < f.At+f.For && g.clock.sleep(r.Context(), 20) {
		if _, err := w.Write(filler); err != nil {
			break
		}
	}
	g.cut(r)
}

// --- streams ----------------------------------------------------------------------------------------

// A watch whose events are spoiled while a fault lasts.
type spoiledStream struct {
	http.ResponseWriter
	gate    *gate
	request *http.Request
}

func (s *spoiledStream) Flush() { flush(s.ResponseWriter) }

func (s *spoiledStream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *spoiledStream) Write(data []byte) (int, error) {
	f := s.gate.faultOf("watch")
	if f == nil {
		return s.ResponseWriter.Write(data)
	}
	g := s.gate
	expired, _ := json.Marshal(object{"type": "ERROR", "object": statusObject(410, "Expired", "too old resource version")})
	broken, _ := json.Marshal(object{"type": "ERROR", "object": statusObject(500, "InternalError", "etcdserver: no leader")})
	switch f.Kind {
	case delay, reorder:
		g.clock.sleep(s.request.Context(), g.between(f.Amount+1))
		return s.ResponseWriter.Write(data)
	case stall:
		g.clock.sleep(s.request.Context(), f.At+f.For-g.clock.now())
		return s.ResponseWriter.Write(data)
	case status410:
		_, _ = s.ResponseWriter.Write(append(expired, '\n'))
	case status429, status500, status503, status409, status500Did:
		_, _ = s.ResponseWriter.Write(append(broken, '\n'))
	case garbage:
		_, _ = io.WriteString(s.ResponseWriter, "\x00\xff{{{\n")
		return len(data), nil
	case wrongShape:
		_, _ = io.WriteString(s.ResponseWriter, shapes[g.between(int64(len(shapes)))]+"\n")
		return len(data), nil
	case shorten:
		_, _ = s.ResponseWriter.Write(append(bytes.Clone(data[:len(data)/2]), '\n'))
		return len(data), nil
	case wrongType:
		_, _ = io.WriteString(s.ResponseWriter, page+"\n")
	case endless:
		g.neverEnd(s.ResponseWriter, s.request, *f)
	default:
		_, _ = s.ResponseWriter.Write(data[:len(data)/2])
	}
	flush(s.ResponseWriter)
	g.cut(s.request)
	return 0, io.ErrClosedPipe
}
