package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"
)

// workloadJSON is the object of the benchmark, 1.3 KB, with a status that a client may not set.
//
//go:embed workload.json
var workloadJSON []byte

const collection = "/apis/bench.example.com/v1/namespaces/team-a/workloads"

// A Load is a request that is sent over and over.
type Load struct {
	Name   string
	Method string
	Path   string
	Body   []byte // nil for none
}

// loads returns what is measured, in the order of the table.
func loads() []Load {
	return []Load{
		{Name: "POST 1.3 KB", Method: http.MethodPost, Path: collection, Body: workloadJSON},
		{Name: "GET", Method: http.MethodGet, Path: collection + "/checkout"},
	}
}

// defaulted are the fields that the policies set in the object, by path.
func defaulted() map[string]any {
	return map[string]any{
		"spec.revisionHistoryLimit":        float64(10),
		"spec.strategy":                    "RollingUpdate",
		"spec.template.spec.restartPolicy": "Always",
	}
}

// checkPassThrough makes sure that a proxy forwards what it is measured with, unchanged.
func checkPassThrough(address string) error {
	for _, l := range loads() {
		got, err := exchange(address, l.Method, l.Path, l.Body)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, workloadJSON) {
			return fmt.Errorf("%s %s: the answer is not the object: %s", l.Method, l.Path, got)
		}
	}
	return nil
}

// checkAdmission makes sure that every part of the admission that is measured takes place: the status goes, the defaults
// come, the schema holds, and each of the five rules denies.
func checkAdmission(address string) error {
	admitted, err := exchange(address, http.MethodPost, collection, workloadJSON)
	if err != nil {
		return err
	}
	var want, got map[string]any
	if err := json.Unmarshal(workloadJSON, &want); err != nil {
		return err
	}
	if err := json.Unmarshal(admitted, &got); err != nil {
		return fmt.Errorf("the admitted object: %w", err)
	}
	delete(want, "status")
	for path, value := range defaulted() {
		set(want, path, value)
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("the admitted object must lack its status and have the defaults: %s", admitted)
	}
	for _, wrong := range []struct{ what, old, new string }{
		{"the schema", `"replicas":3`, `"replicas":"3"`},
		{"rule 1", `"replicas":3`, `"replicas":51`},
		{"rule 2", `"minReadySeconds":10`, `"minReadySeconds":600`},
		{"rule 3", `"matchLabels":{"app":"checkout"}`, `"matchLabels":{"app":"cart"}`},
		{"rule 4", `envoy:1.31.2`, `envoy:latest`},
		{"rule 5", `"limits":{"cpu":"200m","memory":"128Mi"}`, `"limits":{"cpu":"200m"}`},
	} {
		body := bytes.Replace(workloadJSON, []byte(wrong.old), []byte(wrong.new), 1)
		if bytes.Equal(body, workloadJSON) {
			return fmt.Errorf("%s: the object has no %s", wrong.what, wrong.old)
		}
		code, answer, err := send(address, http.MethodPost, collection, body)
		if err != nil {
			return err
		}
		if code != http.StatusUnprocessableEntity {
			return fmt.Errorf("%s does not deny %s: %d %s", wrong.what, wrong.new, code, answer)
		}
	}
	return nil
}

// set sets the field at a path of names separated by dots.
func set(object map[string]any, path string, value any) {
	for {
		name, rest, more := strings.Cut(path, ".")
		if !more {
			object[path] = value
			return
		}
		object, path = object[name].(map[string]any), rest
	}
}

// exchange sends a request and returns the body of its 2xx answer.
func exchange(address, method, path string, body []byte) ([]byte, error) {
	code, answer, err := send(address, method, path, body)
	if err == nil && code/100 != 2 {
		err = fmt.Errorf("%s %s: %d %s", method, path, code, answer)
	}
	return answer, err
}

func send(address, method, path string, body []byte) (code int, answer []byte, err error) {
	request, err := http.NewRequest(method, "http://"+address+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	client := http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}
