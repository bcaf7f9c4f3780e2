package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// The loads with larger objects of the same kind.
const (
	post10KBLoad  = "POST 10 KB"
	post100KBLoad = "POST 100 KB"
)

func largeLoads() []Load {
	only := []string{nginxTarget, fasthttpTarget, gatewayTarget, admissionTarget}
	return []Load{
		{Name: post10KBLoad, Method: http.MethodPost, Path: collection, Body: largeWorkload(10_000), Only: only},
		{Name: post100KBLoad, Method: http.MethodPost, Path: collection, Body: largeWorkload(100_000), Only: only},
	}
}

func largeGoals() []Goal {
	return []Goal{
		{Load: post10KBLoad, Target: admissionTarget, Reference: nginxTarget, AtMost: 1.6},
		{Load: post100KBLoad, Target: admissionTarget, Reference: nginxTarget, AtMost: 2},
	}
}

// maxContainers and maxEnv are the most items that the schema of the benchmark's kind allows.
const maxContainers, maxEnv = 16, 64

// largeWorkload returns the benchmark's object with as many containers, and as much environment in each, as make it so
// large, without indentation.
func largeWorkload(size int) []byte {
	_, from, _ := bytes.Cut(workloadJSON, []byte(`"containers":`))
	var containers []map[string]any
	if err := json.NewDecoder(bytes.NewReader(from)).Decode(&containers); err != nil {
		panic(err) // the file is part of this program
	}
	var b strings.Builder
	n := min(maxContainers, 2+size/2500)
	env := (size - len(workloadJSON)) / n
	for i := range n {
		c := containers[i%len(containers)]
		c["name"] = fmt.Sprintf("container-%d", i)
		var variables []map[string]string
		for left := env; left > 0 && len(variables) < maxEnv; {
			// About 90 bytes each, so that as many as are allowed make the object 100 KB large.
			v := map[string]string{"name": fmt.Sprintf("SETTING_%d", len(variables)),
				"value": fmt.Sprintf("https://service-%d.payments.example.com/v1/settings", len(variables))}
			variables, left = append(variables, v), left-95
		}
		c["env"] = variables
		text, err := json.Marshal(c)
		if err != nil {
			panic(err) // strings and numbers alone
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(text)
	}
	before, _, _ := bytes.Cut(workloadJSON, []byte(`"containers":`))
	return fmt.Appendf(nil, `%s"containers":[%s]}}}}`, before, b.String())
}
