package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

type object = map[string]any

type event struct {
	version   int
	resource  string
	namespace string
	line      []byte
}

// A store of objects with a history, as the API server has it.
type store struct {
	mu      sync.Mutex
	version int
	floor   int // older versions are forgotten
	objects map[string]map[string]object
	events  []event
	changed chan struct{} // closed at each change
}

func newStore() *store {
	return &store{version: 1, objects: map[string]map[string]object{}, changed: make(chan struct{})}
}

func clone(o object) object {
	text, _ := json.Marshal(o)
	var out object
	_ = json.Unmarshal(text, &out)
	return out
}

func at(o any, path ...string) any {
	for _, p := range path {
		m, _ := o.(object)
		o = m[p]
	}
	return o
}

func text(o any, path ...string) string {
	s, _ := at(o, path...).(string)
	return s
}

func number(o any, path ...string) int {
	switch n := at(o, path...).(type) {
	case float64:
		return int(n)
	case int:
		return n
	case int64:
		return int(n)
	}
	return 0
}

func keyOf(o object) string {
	return text(o, "metadata", "namespace") + "/" + text(o, "metadata", "name")
}

// The caller holds the lock.
func (s *store) tell(kind, resource string, o object) {
	line, _ := json.Marshal(object{"type": kind, "object": o})
	s.events = append(s.events, event{s.version, resource, text(o, "metadata", "namespace"), append(line, '\n')})
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *store) put(kind, resource string, o object) object {
	s.version++
	o["metadata"].(object)["resourceVersion"] = fmt.Sprint(s.version)
	if s.objects[resource] == nil {
		s.objects[resource] = map[string]object{}
	}
	s.objects[resource][keyOf(o)] = o
	s.tell(kind, resource, o)
	return o
}

func (s *store) create(resource string, o object) (object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.objects[resource][keyOf(o)]; there {
		return nil, false
	}
	return s.put("ADDED", resource, clone(o)), true
}

// change gets a copy, and may refuse by returning false.
func (s *store) update(resource, key string, change func(object) bool) (object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, there := s.objects[resource][key]
	if !there {
		return nil, false
	}
	o := clone(old)
	if !change(o) {
		return old, false
	}
	return s.put("MODIFIED", resource, o), true
}

func (s *store) remove(resource, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, there := s.objects[resource][key]
	if !there {
		return
	}
	o := clone(old)
	s.version++
	o["metadata"].(object)["resourceVersion"] = fmt.Sprint(s.version)
	delete(s.objects[resource], key)
	s.tell("DELETED", resource, o)
}

func (s *store) get(resource, key string) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[resource][key]
}

// In the order of their names, so that pages are possible.
func (s *store) list(resource, namespace string) ([]object, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []object
	for _, key := range slices.Sorted(maps.Keys(s.objects[resource])) {
		if namespace == "" || strings.HasPrefix(key, namespace+"/") {
			out = append(out, s.objects[resource][key])
		}
	}
	return out, s.version
}

// What happened since a version; gone where that is forgotten.
func (s *store) since(version int, resource, namespace string) (lines [][]byte, last int, changed chan struct{}, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version < s.floor {
		return nil, version, nil, true
	}
	for _, e := range s.events {
		if e.version > version && e.resource == resource && (namespace == "" || e.namespace == namespace) {
			lines = append(lines, e.line)
		}
	}
	return lines, s.version, s.changed, false
}

// As etcd's compaction does.
func (s *store) forgetHistory() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.floor = s.version
	s.events = nil
}

// RFC 7386.
func mergePatch(target, patch any) any {
	p, is := patch.(object)
	if !is {
		return patch
	}
	t, is := target.(object)
	if !is {
		t = object{}
	}
	for k, v := range p {
		if v == nil {
			delete(t, k)
		} else {
			t[k] = mergePatch(t[k], v)
		}
	}
	return t
}
