package main

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"
)

// A step sends at a rate that goes evenly from one value to another, in requests per second.
type step struct {
	from, to float64
	length   time.Duration
}

func (s step) requests() float64 { return (s.from + s.to) / 2 * s.length.Seconds() }

func (s step) rate(at time.Duration) float64 {
	return s.from + (s.to-s.from)*at.Seconds()/s.length.Seconds()
}

// timeOf says when the step has sent that many requests, of which it sends at least so many.
func (s step) timeOf(requests float64) time.Duration {
	// With slope a the requests by time t are from*t + a*t*t/2. This form of the root stays
	// exact as the slope goes to zero.
	slope := (s.to - s.from) / s.length.Seconds()
	root := math.Sqrt(math.Max(0, s.from*s.from+2*slope*requests))
	return time.Duration(2 * requests / (s.from + root) * float64(time.Second))
}

type trace []step

// loadTrace reads "10@30s,10-40@1m" as it stands, and anything else as the name of a file with
// one rate per line.
func loadTrace(source string, every time.Duration) (trace, error) {
	if strings.Contains(source, "@") {
		return parseInline(source)
	}
	return readTrace(source, every)
}

func parseInline(source string) (trace, error) {
	var t trace
	for _, part := range strings.Split(source, ",") {
		rates, length, _ := strings.Cut(strings.TrimSpace(part), "@")
		first, last, ramp := strings.Cut(rates, "-")
		if !ramp {
			last = first
		}
		from, err1 := parseRate(first)
		to, err2 := parseRate(last)
		duration, err3 := time.ParseDuration(length)
		if err3 == nil && duration <= 0 {
			err3 = errors.New("must last longer than nothing")
		}
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, fmt.Errorf("trace: %q: %w", part, err)
		}
		t = append(t, step{from, to, duration})
	}
	return t, nil
}

func readTrace(name string, every time.Duration) (trace, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	var t trace
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		rate, err := parseRate(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, number, err)
		}
		t = append(t, step{rate, rate, every})
	}
	if len(t) == 0 && lines.Err() == nil {
		return nil, fmt.Errorf("%s: holds no rates", name)
	}
	return t, lines.Err()
}

func parseRate(text string) (float64, error) {
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil || !(rate >= 0 && rate <= math.MaxInt32) {
		return 0, fmt.Errorf("%q is not a rate", text)
	}
	return rate, nil
}

// bound scales the trace, cuts its rates to maxRate and its length to longest, and says how many
// steps lost requests by that.
func (t trace) bound(scale, maxRate float64, longest time.Duration) (bounded trace, cut int) {
	for _, s := range t {
		if longest <= 0 {
			break
		}
		s.from *= scale
		s.to *= scale
		if math.Max(s.from, s.to) > maxRate {
			cut++
			s.from = math.Min(s.from, maxRate)
			s.to = math.Min(s.to, maxRate)
		}
		if s.length > longest {
			s.to = s.rate(longest)
			s.length = longest
		}
		longest -= s.length
		bounded = append(bounded, s)
	}
	return bounded, cut
}

func (t trace) length() (sum time.Duration) {
	for _, s := range t {
		sum += s.length
	}
	return sum
}

func (t trace) requests() (sum float64) {
	for _, s := range t {
		sum += s.requests()
	}
	return sum
}

// at finds the step that runs at a time, and how far into it that is.
func (t trace) at(elapsed time.Duration) (index int, into time.Duration) {
	for i, s := range t {
		if elapsed < s.length || i == len(t)-1 {
			return i, min(elapsed, s.length)
		}
		elapsed -= s.length
	}
	return 0, 0
}

// tracePacer sends each request when the trace says, however long earlier ones take to answer.
type tracePacer struct {
	trace
	random *rand.Rand    // of a Poisson process; nil: evenly
	places []float64     // of its requests so far, in mean requests since the beginning
	lag    time.Duration // the most that a request was sent too late
}

func (p *tracePacer) Rate(elapsed time.Duration) float64 {
	index, into := p.at(elapsed)
	return p.trace[index].rate(into)
}

func (p *tracePacer) Pace(elapsed time.Duration, hits uint64) (wait time.Duration, stop bool) {
	due, ok := p.due(hits)
	if !ok {
		return 0, true
	}
	p.lag = max(p.lag, elapsed-due)
	return max(0, due-elapsed), false
}

// place says how many requests the trace should have sent when this one is due. Evenly, it is in the
// middle of its share, so that none falls into a pause.
func (p *tracePacer) place(hits uint64) float64 {
	if p.random == nil {
		return float64(hits) + 0.5
	}
	for uint64(len(p.places)) <= hits {
		last := 0.0
		if len(p.places) > 0 {
			last = p.places[len(p.places)-1]
		}
		p.places = append(p.places, last+p.random.ExpFloat64())
	}
	return p.places[hits]
}

func (p *tracePacer) due(hits uint64) (time.Duration, bool) {
	left := p.place(hits)
	var begin time.Duration
	for _, s := range p.trace {
		if left <= s.requests() {
			return begin + s.timeOf(left), true
		}
		left -= s.requests()
		begin += s.length
	}
	return 0, false
}
