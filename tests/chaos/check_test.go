package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	scalePath  = "/apis/apps/v1/namespaces/chaos/deployments/auto/scale"
	resizePath = "/api/v1/namespaces/chaos/pods/auto-1-0001/resize"
	statusPath = "/apis/autoscaling.faasrl.io/v1alpha1/namespaces/chaos/multidimpodautoscalers/auto/status"
	leasePath  = "/apis/coordination.k8s.io/v1/namespaces/chaos/leases/faasrl-mpa"
)

func scaleTo(atS int64, life string, replicas int) entry {
	return entry{At: atS * 1000, Life: life, Method: "PATCH", Path: scalePath, Taken: true, Status: 200, Answered: atS*1000 + 5,
		Body: fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)}
}

func write(atS int64, path, body string) entry {
	return entry{At: atS * 1000, Life: "a-1", Method: "PATCH", Path: path, Body: body, Taken: true, Status: 200}
}

func resizeTo(atS int64, cpu string) entry {
	return write(atS, resizePath, `{"spec":{"containers":[{"name":"function","resources":{"requests":{"cpu":"`+cpu+`"}}}]}}`)
}

func lease(atS int64, holder string) entry {
	return write(atS, leasePath, `{"spec":{"holderIdentity":"`+holder+`"}}`)
}

func decided(atS int64, reason string) entry {
	return write(atS, statusPath, `{"status":{"lastDecision":{"action":"None","reason":"`+reason+`"}}}`)
}

// A schedule in which all holds, and much happens.
func fine() history {
	keeps := journal{Controller: "a", Decisions: map[string]bool{decisionKey("chaos/auto", "None", "fine"): true}}
	return history{Rules: bounds, Replicas: 2, Quiet: 300000, Recovered: 320000, GraceMs: graceMs, Journals: []journal{keeps},
		Lives: []life{{Name: "a-1", Ended: 330000, Why: "asked to end", Expected: true, PeakKiB: 15000}},
		Entries: []entry{decided(20, "fine"), scaleTo(30, "a-1", 4), resizeTo(31, "600m"), scaleTo(75, "a-1", 6),
			write(76, "/api/v1/namespaces/chaos/events", "{}"), scaleTo(150, "a-1", 5), scaleTo(200, "a-1", 4), resizeTo(201, "100m")}}
}

func TestNothingIsWrongWhereAllHolds(t *testing.T) {
	if found := check(fine()); len(found) != 0 {
		t.Fatal(found)
	}
}

// Each violation is found, and by its name.
func TestEachViolationIsFound(t *testing.T) {
	add := func(entries ...entry) func(*history) {
		return func(h *history) { h.Entries = append(h.Entries, entries...) }
	}
	asB := func(e entry) entry { e.Life = "b-1"; return e }
	lost := scaleTo(290, "a-1", 6) // it was taken, and its answer was lost
	lost.Status, lost.Answered = 0, 0
	for name, c := range map[string]struct {
		invariant string
		spoil     func(*history)
	}{
		"too many replicas":        {"bounds", add(scaleTo(290, "a-1", 9))},
		"too few replicas":         {"bounds", add(scaleTo(290, "a-1", 1))},
		"too few, but refused":     {"bounds", func(h *history) { e := scaleTo(290, "a-1", 0); e.Taken = false; h.Entries = append(h.Entries, e) }},
		"too much CPU":             {"bounds", add(resizeTo(290, "601m"))},
		"too little CPU":           {"bounds", add(resizeTo(290, "99m"))},
		"CPU that cannot be read":  {"bounds", add(resizeTo(290, "much"))},
		"up too fast at once":      {"rates of behavior", add(scaleTo(290, "a-1", 7))},
		"up too fast by two":       {"rates of behavior", add(scaleTo(290, "a-1", 6), scaleTo(300, "a-1", 8))},
		"up too fast after a loss": {"rates of behavior", add(lost, scaleTo(300, "a-1", 7))},
		"down too fast":            {"rates of behavior", add(scaleTo(290, "a-1", 2))},
		"down too fast by two":     {"rates of behavior", add(scaleTo(290, "a-1", 3), scaleTo(300, "a-1", 2))},
		"up and down":              {"no flapping", add(scaleTo(290, "a-1", 6), scaleTo(300, "a-1", 5))},
		"up and down by another":   {"no flapping", add(scaleTo(290, "a-1", 6), scaleTo(300, "a-2", 5))},
		"Off scales":               {"Off writes nothing", add(write(290, strings.Replace(scalePath, "auto", "off", 1), `{"spec":{"replicas":3}}`))},
		"Off resizes":              {"Off writes nothing", add(write(290, strings.Replace(resizePath, "auto", "off", 1), `{}`))},
		"another target":           {"only its target", add(write(290, strings.Replace(scalePath, "auto", "else", 1), `{"spec":{"replicas":3}}`))},
		"the spec of an MPA":       {"only its target", add(write(290, strings.TrimSuffix(statusPath, "/status"), `{"spec":{}}`))},
		"a spec beside status":     {"only status", add(write(290, statusPath, `{"status":{},"spec":{}}`))},
		"two writers": {"one writer", func(h *history) {
			h.Lease = true
			h.Entries = append([]entry{lease(1, "a-1"), lease(10, "b-1")}, h.Entries...)
		}},
		"a writer before it leads": {"one writer", func(h *history) {
			h.Lease = true
			h.Entries = append([]entry{asB(decided(0, "fine")), lease(1, "a-1")}, h.Entries...)
		}},
		"a writer after it gave back": {"one writer", func(h *history) {
			h.Lease = true
			h.Entries = append(append([]entry{lease(1, "a-1")}, h.Entries...), lease(290, ""), asB(scaleTo(291, "b-1", 5)))
		}},
		"a decision that was lost":   {"journal keeps", add(decided(290, "forgotten"))},
		"a journal that is broken":   {"journal whole", func(h *history) { h.Journals[0].Broken = "line 7" }},
		"an end by itself":           {"ends only when killed", func(h *history) { h.Lives[0].Expected = false }},
		"more memory than the limit": {"bounded memory", func(h *history) { h.Lives[0].PeakKiB = maxPeakKiB + 1 }},
		"never well again":           {"recovery within two intervals", func(h *history) { h.Recovered = -1 }},
		"well again too late":        {"recovery within two intervals", func(h *history) { h.Recovered = h.Quiet + endsMs + graceMs + 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			h := fine()
			c.spoil(&h)
			for _, v := range check(h) {
				if v.Invariant == c.invariant {
					return
				}
			}
			t.Errorf("%s was not found, but %v", c.invariant, check(h))
		})
	}
}

func TestAJournalIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.journal")
	line := `{"line":"decision","mpa":"chaos/auto","action":"None","reason":"fine"}`
	for _, c := range []struct {
		content string
		broken  bool
		kept    int
	}{{line + "\n", false, 1}, {line + "\n" + line[:20], false, 1}, {line[:20] + "\n" + line + "\n", true, 1}, {"", false, 0}} {
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		j := readJournal(path)
		if (j.Broken != "") != c.broken || len(j.Decisions) != c.kept || j.Controller != "a" {
			t.Errorf("%q: %+v", c.content, j)
		}
	}
}

func TestASeedIsAlwaysTheSameSchedule(t *testing.T) {
	for seed := range uint64(200) {
		a, b := fmt.Sprint(makeSchedule(seed)), fmt.Sprint(makeSchedule(seed))
		if a != b {
			t.Fatalf("seed %d: %s and %s", seed, a, b)
		}
	}
	if fmt.Sprint(makeSchedule(1)) == fmt.Sprint(makeSchedule(2)) {
		t.Fatal("two seeds are the same schedule")
	}
}

// A thousand schedules meet every fault, every class of requests and every point of a write.
func TestAThousandSchedulesHaveEverything(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(1000) {
		for _, f := range makeSchedule(seed + 1).Faults {
			seen[f.Kind], seen[f.Class], seen[f.Stage], seen[f.Side] = true, true, true, true
		}
	}
	for _, names := range [][]string{atDoors, ofHost, classes, stages, {api, prometheus, host}} {
		for _, name := range names {
			if !seen[name] {
				t.Errorf("no schedule has %q", name)
			}
		}
	}
}
