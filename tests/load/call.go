package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	firstSize  = 1500
	timedCalls = 5
	longest    = 10 * time.Second // of a timed call: a small pod may have little CPU
	patience   = 30 * time.Second // while nobody listens yet: a service learns of its pods a little later than others do
)

var cpuTiming = regexp.MustCompile(`cpu;dur=([0-9.]+)`)

// timeCall tells the CPU of one call, by the answer itself.
func timeCall(client *http.Client, target, host string) (float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return 0, err
	}
	request.Host = host
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	found := cpuTiming.FindStringSubmatch(strings.Join(answer.Header.Values("Server-Timing"), ","))
	if found == nil {
		return 0, fmt.Errorf("%s: HTTP %d, and no cpu in its Server-Timing", target, answer.StatusCode)
	}
	return strconv.ParseFloat(found[1], 64)
}

func timeCallOnceThere(client *http.Client, target, host string) (float64, error) {
	begun := time.Now()
	for {
		cost, err := timeCall(client, target, host)
		if !errors.Is(err, syscall.ECONNREFUSED) || time.Since(begun) > patience {
			return cost, err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// sizeCall gives the target an n with which a call takes about so many milliseconds of CPU: machines differ, and what a
// fixed call costs on one says nothing of another.
func sizeCall(client *http.Client, target, host string, cpuMs float64) (string, error) {
	parsed, err := url.Parse(target)
	if err != nil {
		return "", err
	}
	query, costs := parsed.Query(), []float64{}
	query.Set("n", strconv.Itoa(firstSize))
	parsed.RawQuery = query.Encode()
	for range timedCalls {
		cost, err := timeCallOnceThere(client, parsed.String(), host)
		if err != nil {
			return "", err
		}
		costs = append(costs, max(cost, 0.001))
	}
	slices.Sort(costs)
	query.Set("n", strconv.Itoa(max(1, int(firstSize*cpuMs/costs[timedCalls/2]))))
	parsed.RawQuery = query.Encode()
	return parsed.String(), nil
}
