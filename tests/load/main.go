// Load replays a trace of request rates against an HTTP server. The loop is open: requests go out
// when the trace says, however long the server takes, as the callers of a function do.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

const (
	mostRequests  = 1_000_000
	highestRate   = 2000
	longestRun    = 6 * time.Hour
	progressEvery = 5 * time.Second
)

type options struct {
	targets                 []string
	trace, samples, host    string
	scale, maxRate, callMs  float64
	step, duration, timeout time.Duration
	seed                    uint64
	poisson                 bool
	noKeepAlive, json       bool
}

func parseOptions() (o options) {
	flag.Func("target", "URL to request; of several, each request takes one at random",
		func(target string) error { o.targets = append(o.targets, target); return nil })
	flag.StringVar(&o.host, "host", "", "the Host to ask for, if it is not that of the URL")
	flag.Float64Var(&o.callMs, "call-ms", 0,
		"set each target's n so that a call takes about so much CPU; asks a few of them first")
	flag.StringVar(&o.trace, "trace", "",
		"file with a rate per line, or steps as 10@30s,10-40@1m (requests per second)")
	flag.Float64Var(&o.scale, "scale", 1, "factor on all rates")
	flag.DurationVar(&o.step, "step", time.Second, "how long each line of a trace file lasts")
	flag.Float64Var(&o.maxRate, "max-rate", 500, "highest rate; higher ones are cut to it")
	flag.DurationVar(&o.duration, "duration", longestRun, "end after this, if the trace is longer")
	flag.DurationVar(&o.timeout, "timeout", 5*time.Second, "a request fails after this")
	flag.BoolVar(&o.poisson, "poisson", false,
		"send at random times, the rates being the means of a Poisson process, not evenly")
	flag.Uint64Var(&o.seed, "seed", 1, "of what is random")
	flag.StringVar(&o.samples, "samples", "",
		"file to write every request to: when it was sent (s), its latency (ms), its HTTP status, "+
			"its URL, and the Server-Timing of the answer")
	flag.BoolVar(&o.noKeepAlive, "no-keepalive", true,
		"connect anew for each request: a Service spreads connections, not requests, over pods")
	flag.BoolVar(&o.json, "json", false, "print no progress, and the summary on one line")
	flag.Parse()
	return o
}

func (o options) check() error {
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("%q: unexpected argument", flag.Arg(0))
	case len(o.targets) == 0 || o.trace == "":
		return errors.New("--target and --trace are needed")
	case !(o.scale > 0 && o.scale <= 1000):
		return errors.New("--scale: must be above 0 and at most 1000")
	case !(o.callMs >= 0 && o.callMs <= 1000):
		return errors.New("--call-ms: must be from 0 to 1000")
	case !(o.maxRate > 0 && o.maxRate <= highestRate):
		return fmt.Errorf("--max-rate: must be above 0 and at most %d", highestRate)
	case o.step < time.Millisecond || o.step > time.Hour:
		return errors.New("--step: must be from 1ms to 1h")
	case o.duration <= 0 || o.duration > longestRun:
		return fmt.Errorf("--duration: must be above 0 and at most %s", longestRun)
	case o.timeout <= 0 || o.timeout > time.Minute:
		return errors.New("--timeout: must be above 0 and at most 1m")
	}
	for _, target := range o.targets {
		if err := checkTarget(target); err != nil {
			return err
		}
	}
	return nil
}

func (o options) boundedTrace() (trace, error) {
	t, err := loadTrace(o.trace, o.step)
	if err != nil {
		return nil, err
	}
	t, cut := t.bound(o.scale, o.maxRate, o.duration)
	if cut > 0 {
		fmt.Fprintf(os.Stderr, "load: %d steps cut to --max-rate %g\n", cut, o.maxRate)
	}
	if t.requests() > mostRequests {
		return nil, fmt.Errorf("trace: %.0f requests, more than %d", t.requests(), mostRequests)
	}
	return t, nil
}

// Times and targets are drawn apart, so that the times are the same whatever is requested.
func (o options) pacer(t trace) *tracePacer {
	p := &tracePacer{trace: t}
	if o.poisson {
		p.random = rand.New(rand.NewPCG(o.seed, 0))
	}
	return p
}

func (o options) targeter() vegeta.Targeter {
	var lock sync.Mutex
	random := rand.New(rand.NewPCG(o.seed, 1))
	header := http.Header{}
	if o.host != "" {
		header.Set("Host", o.host)
	}
	return func(next *vegeta.Target) error {
		lock.Lock()
		defer lock.Unlock()
		*next = vegeta.Target{Method: http.MethodGet, URL: o.targets[random.IntN(len(o.targets))], Header: header}
		return nil
	}
}

func (o options) attack(t trace, progress io.Writer) *report {
	// Enough workers for every request that can be under way; fewer would close the loop.
	workers := uint64(math.Ceil(o.maxRate*o.timeout.Seconds())) + 1
	attacker := vegeta.NewAttacker(vegeta.Client(newClient(o.timeout, o.noKeepAlive)),
		vegeta.MaxWorkers(workers), vegeta.MaxBody(0))
	pacer := o.pacer(t)

	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()

	r := newReport(t, time.Now())
	results := attacker.Attack(o.targeter(), pacer, 0, "")
	for {
		select {
		case result, ok := <-results:
			if !ok {
				r.finish(pacer.lag)
				return r
			}
			r.add(result)
		case <-ticker.C:
			r.progress(progress, progressEvery)
		case <-interrupts:
			attacker.Stop()
		}
	}
}

func run(o options) error {
	if err := o.check(); err != nil {
		return err
	}
	t, err := o.boundedTrace()
	if err != nil {
		return err
	}
	for i, target := range o.targets {
		if o.callMs == 0 {
			break
		}
		if o.targets[i], err = sizeCall(newClient(longest, true), target, o.host, o.callMs); err != nil {
			return fmt.Errorf("--call-ms: %w", err)
		}
	}
	progress, indent := io.Writer(os.Stderr), "  "
	if o.json {
		progress, indent = io.Discard, ""
	}
	r := o.attack(t, progress)
	if o.samples != "" {
		if err := r.writeSamples(o.samples); err != nil {
			return err
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", indent)
	return encoder.Encode(r)
}

func main() {
	if err := run(parseOptions()); err != nil {
		fmt.Fprintf(os.Stderr, "load: %v\n", err)
		os.Exit(1)
	}
}
