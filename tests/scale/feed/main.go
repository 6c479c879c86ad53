// What kwok's pods would measure: it watches the pods of a namespace and tells, of each, the latency histogram and the
// container's CPU, CFS periods and memory to Prometheus, and the CPU to metrics.k8s.io. One in ten functions has a load
// that comes and goes; the others' is steady, until POST /step multiplies that of a few.
package main

import (
	"flag"
	"log"
	"net/http"
	"time"
)

func main() {
	api := flag.String("api", "", "URL of the API server")
	ca := flag.String("ca", "", "its authority's certificate")
	cert := flag.String("cert", "", "our client certificate")
	key := flag.String("key", "", "its key")
	namespace := flag.String("namespace", "scale", "whose pods are measured")
	listen := flag.String("listen", "127.0.0.1:26090", "where Prometheus scrapes")
	metrics := flag.String("metrics-api", "127.0.0.1:26443", "where metrics.k8s.io is served")
	flag.Parse()

	fleet := newFleet()
	follower, err := newFollower(*api, *ca, *cert, *key, *namespace, fleet)
	if err != nil {
		log.Fatal(err)
	}
	go follower.follow()
	go func() {
		for now := range time.Tick(time.Second) {
			fleet.advance(now)
		}
	}()
	go func() { log.Fatal(serveMetricsAPI(*metrics, *namespace, fleet)) }()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", fleet.expose)
	mux.HandleFunc("GET /pods", fleet.count)
	mux.HandleFunc("POST /step", fleet.step)
	log.Fatal(http.ListenAndServe(*listen, mux))
}
