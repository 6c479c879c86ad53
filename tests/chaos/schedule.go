package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// What a fault does. Those of a door spoil single requests; those of the host happen once.
const (
	// at a door
	delay        = "delay"
	reorder      = "reorder"
	cutBefore    = "cut before"   // the request never arrives
	cutAfter     = "cut after"    // it does, but its answer is lost
	truncate     = "truncate"     // half of the answer comes, then the connection is cut
	shorten      = "shorten"      // half of the answer comes, as if it were all
	stall        = "stall"        // nothing comes until the fault ends
	status429    = "429"          // with Retry-After
	status500    = "500"          // and nothing was done
	status500Did = "500 but done" // it was done all the same
	status503    = "503"          // with and without Retry-After
	status409    = "409"          // to writes
	status410    = "410"          // in a watch and in a list
	garbage      = "garbage"      // no JSON
	wrongShape   = "wrong shape"  // JSON of something else
	wrongType    = "wrong type"   // a page of a proxy, with status 200
	endless      = "endless"      // a body without an end
	// of the host and of servers
	crash       = "SIGKILL at a write"
	down        = "API server restarts"
	etcd        = "etcd restarts"
	clockJump   = "clock jumps"
	diskFull    = "disk full"
	outOfMemory = "out of memory"
	lostPod     = "pod lost"
)

var atDoors = []string{delay, reorder, cutBefore, cutAfter, truncate, shorten, stall, status429, status500,
	status500Did, status503, status409, status410, garbage, wrongShape, wrongType, endless}

var ofHost = []string{crash, crash, crash, down, etcd, clockJump, diskFull, outOfMemory, lostPod}

const (
	api        = "API server"
	prometheus = "Prometheus"
	host       = "host"
)

// Which requests: all, or only these.
var classes = []string{"all", "list", "watch", "write", "query"}

// Where a controller is killed when it writes.
const (
	beforeTaken  = "before it is taken"
	beforeAnswer = "after it is taken"
	afterAnswer  = "after it is answered"
)

var stages = []string{beforeTaken, beforeAnswer, afterAnswer}

type fault struct {
	At, For int64 // ms of the schedule
	Side    string
	Kind    string
	Class   string
	Share   float64 // of the requests
	Amount  int64   // ms of a delay or a jump, the number of a write, bytes of disk that are left
	Stage   string
}

type schedule struct {
	Seed   uint64
	Faults []fault
	Loads  []load
	Lease  bool // by leader election; with a second controller that stands by
	Quiet  int64
}

const (
	intervalMs = 15000
	warmMs     = 20000
	endsMs     = 2 * intervalMs // within these it must have recovered
)

func (f fault) String() string {
	out := fmt.Sprintf("%5.1f s +%4.1f s  %s: %s", float64(f.At)/1000, float64(f.For)/1000, f.Side, f.Kind)
	if f.Class != "" {
		out += fmt.Sprintf(" of %s, %.0f %%", f.Class, f.Share*100)
	}
	if f.Amount != 0 {
		out += fmt.Sprintf(" (%d)", f.Amount)
	}
	return strings.TrimRight(out+" "+f.Stage, " ")
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func doorFault(r *rand.Rand) fault {
	f := fault{Side: api, Kind: pick(r, atDoors), Share: pick(r, []float64{0.2, 0.5, 1}),
		For: 5000 + r.Int64N(40000), Amount: 100 + r.Int64N(8000), Class: pick(r, classes[:4])}
	if r.IntN(4) == 0 {
		f.Side, f.Class = prometheus, "query"
	}
	return f
}

func hostFault(r *rand.Rand) fault {
	f := fault{Side: host, Kind: pick(r, ofHost)}
	switch f.Kind {
	case crash:
		f.For, f.Class, f.Stage = 30000, pick(r, []string{"any write", "scale", "resize", "status", "leases"}), pick(r, stages)
		f.Amount, f.Share = 1+r.Int64N(3), 1
	case down, etcd:
		f.For = 2000 + r.Int64N(38000)
	case clockJump:
		f.Amount = pick(r, []int64{-1, 1}) * pick(r, []int64{1500, 30000, 600000, 3600000, 40000000})
	case diskFull:
		f.For, f.Amount = 10000+r.Int64N(40000), 1+r.Int64N(3000)
	case outOfMemory:
		f.For, f.Amount = 20000, r.Int64N(1<<20)
	case lostPod:
		f.Amount = r.Int64N(10)
	}
	return f
}

// All of a schedule follows from its seed.
func makeSchedule(seed uint64) schedule {
	r := rand.New(rand.NewPCG(seed, 0xc4a05))
	s := schedule{Seed: seed, Lease: r.IntN(3) == 0}
	for range 1 + r.IntN(5) {
		f := doorFault(r)
		if r.IntN(3) == 0 {
			f = hostFault(r)
		}
		f.At = warmMs + r.Int64N(50000)
		s.Faults = append(s.Faults, f)
		if f.Kind == outOfMemory { // which it must be in want of
			s.Faults = append(s.Faults, fault{At: f.At, For: f.For, Side: api, Kind: endless, Class: "all", Share: 1})
		}
		s.Quiet = max(s.Quiet, f.At+f.For)
	}
	s.Quiet += 3000 // who was killed at the very end is there again
	s.Loads = makeLoads(r, s.Quiet+2*endsMs)
	return s
}
