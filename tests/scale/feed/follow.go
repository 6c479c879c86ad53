package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// Lists and watches the pods of one namespace.
type follower struct {
	client    *http.Client
	url       string
	namespace string
	fleet     *fleet
}

type podObject struct {
	Metadata struct {
		Name            string            `json:"name"`
		ResourceVersion string            `json:"resourceVersion"`
		Labels          map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Containers []struct {
			Resources struct {
				Requests map[string]string `json:"requests"`
			} `json:"resources"`
		} `json:"containers"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
	Code int `json:"code"` // of an ERROR event
}

func newFollower(api, ca, cert, key, namespace string, fleet *fleet) (*follower, error) {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}}
	return &follower{&http.Client{Transport: transport}, api + "/api/v1/namespaces/" + namespace + "/pods", namespace,
		fleet}, nil
}

func (f *follower) follow() {
	for {
		if err := f.once(); err != nil {
			log.Print(err)
		}
		time.Sleep(time.Second)
	}
}

func (f *follower) get(query string) (*http.Response, error) {
	response, err := f.client.Get(f.url + query)
	if err == nil && response.StatusCode != http.StatusOK {
		response.Body.Close()
		err = fmt.Errorf("%s: %s", f.url, response.Status)
	}
	return response, err
}

func (f *follower) once() error {
	version, err := f.list()
	for err == nil {
		version, err = f.watch(version)
	}
	return err
}

func (f *follower) list() (string, error) {
	known := map[string]bool{}
	response, err := f.get("?resourceVersion=0")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []podObject `json:"items"`
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return "", err
	}
	for _, item := range list.Items {
		known[item.Metadata.Name] = true
		f.take(&item)
	}
	for _, name := range f.fleet.names() {
		if !known[name] {
			f.fleet.drop(name)
		}
	}
	return list.Metadata.ResourceVersion, nil
}

// The newest version seen, to go on from when the server ends the watch in its time.
func (f *follower) watch(version string) (string, error) {
	response, err := f.get("?watch=1&allowWatchBookmarks=true&resourceVersion=" + version)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	decoder := json.NewDecoder(response.Body)
	for {
		var event struct {
			Type   string    `json:"type"`
			Object podObject `json:"object"`
		}
		if decoder.Decode(&event) != nil {
			return version, nil
		}
		switch event.Type {
		case "ADDED", "MODIFIED":
			f.take(&event.Object)
		case "DELETED":
			f.fleet.drop(event.Object.Metadata.Name)
		case "ERROR":
			return "", fmt.Errorf("the watch was ended with %d", event.Object.Code)
		}
		version = event.Object.Metadata.ResourceVersion
	}
}

func (f *follower) take(object *podObject) {
	app := object.Metadata.Labels["app"]
	if object.Status.Phase != "Running" || app == "" || len(object.Spec.Containers) == 0 {
		return
	}
	cores, err := parseCores(object.Spec.Containers[0].Resources.Requests["cpu"])
	if err == nil && cores > 0 {
		f.fleet.put(f.namespace, object.Metadata.Name, app, cores)
	}
}

func parseCores(quantity string) (float64, error) {
	if milli, found := strings.CutSuffix(quantity, "m"); found {
		value, err := strconv.ParseFloat(milli, 64)
		return value / 1000, err
	}
	return strconv.ParseFloat(quantity, 64)
}

func (f *fleet) names() []string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var names []string
	for name := range f.pods {
		names = append(names, name)
	}
	return names
}
