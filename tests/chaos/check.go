package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// The bounds and the behavior of the MPA that acts.
type rules struct {
	MinReplicas, MaxReplicas int
	MinCPU, MaxCPU           int // milli
	UpPods, UpPeriodMs       int
	DownPods, DownPeriodMs   int
	StableMs                 int // scaleDown's stabilization window
}

// All that is known of a schedule when it is over.
type history struct {
	Rules     rules
	Replicas  int // in the beginning
	Entries   []entry
	Lives     []life
	Journals  []journal
	Lease     bool
	FullAt    int64 // when the disk was full first; 0: never
	Quiet     int64 // when the last fault was over
	Recovered int64 // -1: never
	GraceMs   int64
}

type violation struct {
	Invariant, Text string
}

const (
	// Beside two intervals: an answer's way, a status that is looked for each 250 ms.
	graceMs = 3000
	// A write may wait for so long between its decision and the server: its way, and what Retry-After holds.
	onItsWayMs = 12000
	inTime     = "recovery within two intervals"
	maxPeakKiB = 128 << 10 // the chart's limit
)

func check(h history) []violation {
	var out []violation
	for _, one := range []func(history) []violation{checkBounds, checkTargets, checkRates, checkStable, checkLease,
		checkJournals, checkLives, checkRecovery} {
		out = append(out, one(h)...)
	}
	return out
}

func broken(invariant string, e entry, format string, args ...any) violation {
	return violation{invariant, fmt.Sprintf("%.1f s, %s %s by %s: ", float64(e.At)/1000, e.Method, e.Path, e.Life) +
		fmt.Sprintf(format, args...)}
}

func (e entry) body() object {
	var o object
	_ = json.Unmarshal([]byte(e.Body), &o)
	return o
}

func (e entry) is(kind string) bool { return kindOfWrite(e.Path) == kind }

// --- bounds -----------------------------------------------------------------------------------------

func checkBounds(h history) []violation {
	var out []violation
	for _, e := range h.Entries {
		switch {
		case e.is("scale"):
			if n := number(e.body(), "spec", "replicas"); n < h.Rules.MinReplicas || n > h.Rules.MaxReplicas {
				out = append(out, broken("bounds", e, "%d replicas", n))
			}
		case e.is("resize"):
			list, _ := at(e.body(), "spec", "containers").([]any)
			for _, c := range list {
				cpu := milli(text(c, "resources", "requests", "cpu"))
				if cpu < int64(h.Rules.MinCPU) || cpu > int64(h.Rules.MaxCPU) {
					out = append(out, broken("bounds", e, "%d m of CPU", cpu))
				}
			}
		}
	}
	return out
}

// --- what may be written ----------------------------------------------------------------------------

// Status, events and the lease; the target of the MPA that acts, and nothing of the one in mode Off.
func checkTargets(h history) []violation {
	var out []violation
	for _, e := range h.Entries {
		name := e.Path[strings.LastIndex(strings.TrimSuffix(strings.TrimSuffix(e.Path, "/scale"), "/resize"), "/")+1:]
		switch kind := kindOfWrite(e.Path); {
		case kind == "events" || kind == "leases":
		case kind == "status" && strings.Contains(e.Path, "/multidimpodautoscalers/"):
			if slices.ContainsFunc(sortedKeys(e.body()), func(k string) bool { return k != "status" }) {
				out = append(out, broken("only status", e, "it writes more than status"))
			}
		case strings.HasPrefix(name, watchedName):
			out = append(out, broken("Off writes nothing", e, "%s", e.Body))
		case (kind == "scale" || kind == "resize") && strings.HasPrefix(name, controlledName):
		default:
			out = append(out, broken("only its target", e, "%s", e.Body))
		}
	}
	return out
}

func sortedKeys(o object) []string {
	var out []string
	for k := range o {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// --- behavior ---------------------------------------------------------------------------------------

type scaling struct {
	entry
	From, To int
}

// What really changed replicas, whether or not the controller was told.
func (h history) scalings() []scaling {
	var out []scaling
	now := h.Replicas
	for _, e := range h.Entries {
		if !e.is("scale") || !e.Taken {
			continue
		}
		to := number(e.body(), "spec", "replicas")
		if to != now {
			out = append(out, scaling{e, now, to})
		}
		now = to
	}
	return out
}

// The least and the most replicas that there were a period before, as far as this life of the
// controller changed them: one that starts anew counts from what it finds.
func (s scaling) before(all []scaling, periodMs int) (least, most int) {
	start := s.From
	least, most = start, start
	for i := len(all) - 1; i >= 0; i-- {
		o := all[i]
		if o.At >= s.At || o.Life != s.Life {
			continue
		}
		if s.At-o.At >= int64(periodMs)+onItsWayMs {
			break
		}
		start = o.From
		if s.At-o.At < int64(periodMs) {
			least, most = start, start
		} else { // it may have been decided while that counted still
			least, most = min(least, start), max(most, start)
		}
	}
	return least, most
}

func checkRates(h history) []violation {
	var out []violation
	all := h.scalings()
	for _, s := range all {
		if s.To > s.From {
			if _, most := s.before(all, h.Rules.UpPeriodMs); s.To > most+h.Rules.UpPods {
				out = append(out, broken("rates of behavior", s.entry, "%d → %d, but there were %d a period before", s.From, s.To, most))
			}
		} else if least, _ := s.before(all, h.Rules.DownPeriodMs); s.To < least-h.Rules.DownPods {
			out = append(out, broken("rates of behavior", s.entry, "%d → %d, but there were %d a period before", s.From, s.To, least))
		}
	}
	return out
}

// No step down so soon after one up, by whichever life of a controller.
func checkStable(h history) []violation {
	var out []violation
	var up int64 = -1 << 40
	for _, s := range h.scalings() {
		if s.To > s.From {
			up = s.At
		} else if s.At-up < int64(h.Rules.StableMs)-onItsWayMs {
			out = append(out, broken("no flapping", s.entry, "%d → %d only %.1f s after a step up", s.From, s.To, float64(s.At-up)/1000))
		}
	}
	return out
}

// --- one writer -------------------------------------------------------------------------------------

// Who gave the lease back may have its last writes on their way, as long as nobody else has it.
func checkLease(h history) []violation {
	var out []violation
	holder := ""
	for _, e := range h.Entries {
		switch {
		case !h.Lease:
		case e.is("leases"):
			if to := text(e.body(), "spec", "holderIdentity"); e.Taken && to != "" {
				holder = to
			}
		case e.Life != holder:
			out = append(out, broken("one writer", e, "the lease is of %q", holder))
		}
	}
	return out
}

// --- the journal ------------------------------------------------------------------------------------

type journal struct {
	Controller string
	Decisions  map[string]bool // MPA, action, reason
	Broken     string          // a line in the middle that cannot be read
}

func readJournal(path string) journal {
	out := journal{Decisions: map[string]bool{}, Controller: strings.TrimSuffix(path[strings.LastIndex(path, "/")+1:], ".journal")}
	data, _ := os.ReadFile(path)
	lines := strings.Split(string(data), "\n")
	for i, line := range lines {
		var o object
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			if i < len(lines)-1 { // the last one may be cut, and is empty else
				out.Broken = fmt.Sprintf("line %d: %.60q", i+1, line)
			}
			continue
		}
		if text(o, "line") == "decision" {
			out.Decisions[decisionKey(text(o, "mpa"), text(o, "action"), text(o, "reason"))] = true
		}
	}
	return out
}

func decisionKey(mpa, action, reason string) string { return mpa + ": " + action + ": " + reason }

// A decision that the API server was told of is in the journal.
func checkJournals(h history) []violation {
	var out []violation
	for _, j := range h.Journals {
		if j.Broken != "" {
			out = append(out, violation{"journal whole", j.Controller + ": " + j.Broken})
		}
		for _, e := range h.Entries {
			if !strings.HasPrefix(e.Life, j.Controller+"-") || !e.is("status") || (h.FullAt > 0 && e.At >= h.FullAt) {
				continue
			}
			last := at(e.body(), "status", "lastDecision")
			key := decisionKey(mpaOf(e.Path), text(last, "action"), text(last, "reason"))
			if last != nil && !j.Decisions[key] {
				out = append(out, broken("journal keeps", e, "not in it: %s", key))
			}
		}
	}
	return out
}

func mpaOf(path string) string {
	parts := strings.Split(path, "/")
	return parts[len(parts)-4] + "/" + parts[len(parts)-2]
}

// --- life -------------------------------------------------------------------------------------------

func checkLives(h history) []violation {
	var out []violation
	for _, l := range h.Lives {
		if !l.Expected {
			out = append(out, violation{"ends only when killed", fmt.Sprintf("%s after %.1f s: %s", l.Name, float64(l.Ended-l.Began)/1000, l.Why)})
		}
		if l.PeakKiB > maxPeakKiB {
			out = append(out, violation{"bounded memory", fmt.Sprintf("%s took %d KiB", l.Name, l.PeakKiB)})
		}
	}
	return out
}

func checkRecovery(h history) []violation {
	took := h.Recovered - h.Quiet
	if h.Recovered >= 0 && took <= endsMs+h.GraceMs {
		return nil
	}
	how := "never"
	if h.Recovered >= 0 {
		how = fmt.Sprintf("after %.1f s", float64(took)/1000)
	}
	return []violation{{inTime, how + fmt.Sprintf(", and %.1f s is allowed", float64(endsMs+h.GraceMs)/1000)}}
}

// --- figures ----------------------------------------------------------------------------------------

func (h history) counts() map[string]int {
	out := map[string]int{"lives": len(h.Lives)}
	for _, e := range h.Entries {
		out["writes"]++
		out[kindOfWrite(e.Path)]++
		if e.Spoiled != "" {
			out["spoiled"]++
		}
		if strings.HasPrefix(e.Spoiled, crash) {
			out["crashes"]++
		}
		if e.Taken && (e.Answered == 0 || e.Status >= 300) {
			out["taken, not told"]++
		}
	}
	for _, l := range h.Lives {
		out["end: "+l.Why]++
	}
	return out
}

func (h history) write(path string) {
	data, _ := json.MarshalIndent(h, "", " ")
	_ = os.WriteFile(path, data, 0o644)
}
