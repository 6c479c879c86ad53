// Chaos: schedules of faults for the real controller, and what must hold whatever happens. Each
// follows from its seed; docs/reliability.md tells what is promised and what came of it.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"
)

type options struct {
	schedules, parallel int
	seed                uint64
	verbose             bool
}

func parse() (*setting, options, error) {
	var s setting
	var o options
	flag.StringVar(&s.program, "controller", "build/faasrl-mpa", "the program")
	flag.StringVar(&s.mpactl, "mpactl", "build/mpactl", "repeats the journals")
	flag.StringVar(&s.preload, "preload", "build/chaos/preload.so", "clocks and disks that obey")
	flag.StringVar(&s.dir, "dir", "build/chaos/run", "where logs and journals lie")
	server := flag.String("server", "", "directory of a real API server that tests/chaos/server has started; else one of ours")
	script := flag.String("server-script", "tests/chaos/server", "which stops and starts it")
	flag.Int64Var(&s.warp, "warp", 10, "how many times faster the controller's clocks run")
	flag.IntVar(&o.schedules, "schedules", 1000, "how many")
	flag.Uint64Var(&o.seed, "seed", 1, "of the first; the next ones follow")
	flag.IntVar(&o.parallel, "parallel", 6*runtime.NumCPU(), "at a time")
	flag.BoolVar(&o.verbose, "v", false, "tell what happens in each")
	flag.Parse()
	var err error
	if *server != "" {
		if s.server, err = openServer(*server, *script); err != nil {
			return nil, o, err
		}
	}
	s.certificate, s.authority, err = makeCertificate()
	return &s, o, err
}

func main() {
	s, o, err := parse()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(2)
	}
	began := time.Now()
	outcomes := runAll(s, o)
	report(outcomes, time.Since(began))
	if slices.ContainsFunc(outcomes, func(out outcome) bool { return len(out.Violations) > 0 }) {
		os.Exit(1)
	}
}

// A machine that stands still says nothing of how soon a controller recovers: who was late then comes
// once more when the others are done, with more of the machine for itself.
func runAll(s *setting, o options) []outcome {
	outcomes := make([]outcome, o.schedules)
	places := make([]int, o.schedules)
	for i := range places {
		places[i] = i
	}
	runSome(s, o, places, outcomes)
	o.parallel = max(1, o.parallel/4)
	for round := 0; round < 3; round++ {
		places = slices.DeleteFunc(places, func(i int) bool { return !outcomes[i].late() || outcomes[i].Lag < disturbance })
		if len(places) > 0 {
			fmt.Printf("%d once more, as the machine stood still\n", len(places))
			runSome(s, o, places, outcomes)
		}
	}
	return outcomes
}

const disturbance = 100 * time.Millisecond

func (out outcome) late() bool { return out.RecoveryMs < 0 || out.RecoveryMs > endsMs+graceMs }

func runSome(s *setting, o options, places []int, outcomes []outcome) {
	turns := make(chan bool, o.parallel)
	var all sync.WaitGroup
	var told sync.Mutex
	for _, i := range places {
		turns <- true
		all.Add(1)
		go func() {
			defer all.Done()
			defer func() { <-turns }()
			sched := makeSchedule(o.seed + uint64(i))
			out, err := runSchedule(s, sched)
			if err != nil {
				fmt.Fprintln(os.Stderr, "chaos:", err)
				os.Exit(2)
			}
			outcomes[i] = out
			told.Lock()
			defer told.Unlock()
			tell(sched, out, o.verbose)
		}()
	}
	all.Wait()
}

func tell(s schedule, out outcome, verbose bool) {
	word := "holds"
	if len(out.Violations) > 0 {
		word = "BROKEN"
	}
	fmt.Printf("seed %d: %s; recovered in %.1f s, %d writes, %d spoiled, %d lives\n", s.Seed, word,
		float64(out.RecoveryMs)/1000, out.Counts["writes"], out.Counts["spoiled"], out.Counts["lives"])
	if len(out.Violations) > 0 || verbose {
		for _, f := range s.Faults {
			fmt.Println("   ", f)
		}
	}
	for _, v := range out.Violations {
		fmt.Printf("  %s: %s\n", v.Invariant, v.Text)
	}
	if len(out.Violations) > 0 {
		fmt.Printf("  again: make chaos CHAOS_SEED=%d CHAOS_SCHEDULES=1\n", s.Seed)
	}
}

// --- the sum ----------------------------------------------------------------------------------------

func report(outcomes []outcome, took time.Duration) {
	sums, byInvariant := map[string]int{}, map[string]int{}
	var recoveries []int64
	var peak int64
	failed, late := 0, 0
	for _, out := range outcomes {
		for k, n := range out.Counts {
			sums[k] += n
		}
		seen := map[string]bool{}
		for _, v := range out.Violations {
			seen[v.Invariant] = true
		}
		for name := range seen {
			byInvariant[name]++
		}
		failed += min(1, len(out.Violations))
		recoveries = append(recoveries, out.RecoveryMs)
		peak = max(peak, out.PeakKiB)
		if len(out.Violations) == 0 && out.late() {
			late++
		}
	}
	slices.Sort(recoveries)
	at := func(q float64) float64 { return float64(recoveries[int(q*float64(len(recoveries)-1))]) / 1000 }
	fmt.Printf("\n%d schedules in %.0f s, seeds %d to %d: %d hold, %d broken\n", len(outcomes), took.Seconds(),
		outcomes[0].Seed, outcomes[len(outcomes)-1].Seed, len(outcomes)-failed, failed)
	fmt.Printf("recovery: median %.1f s, p99 %.1f s, longest %.1f s; most memory %.1f MiB\n", at(0.5), at(0.99), at(1), float64(peak)/1024)
	if late > 0 {
		fmt.Printf("%d recovered later than after %.0f s, while the machine itself stood still\n", late, float64(endsMs+graceMs)/1000)
	}
	for _, k := range slices.SortedFunc(maps.Keys(sums), cmp.Compare[string]) {
		fmt.Printf("  %-28s %d\n", k, sums[k])
	}
	for name, n := range byInvariant {
		fmt.Printf("BROKEN in %d: %s\n", n, name)
	}
}
