package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// wrkDone makes wrk print its figures as one line of JSON, latencies in microseconds.
const wrkDone = `
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('{"requests":%d,"microseconds":%d,"p50":%d,"p99":%d,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    e.status, e.connect + e.read + e.write + e.timeout))
end
`

// wrkSpread makes wrk write one object after the other, each by its name in path and body. The requests are fixed, as
// the one of other loads is.
const wrkSpread = `
local all, n = {}, 0
init = function(args)
  for i = 1, 1000 do
    local body = string.gsub(wrk.body, '"name":"%[1]s"', '"name":"%[1]s-' .. i .. '"', 1)
    all[i] = wrk.format(nil, wrk.path .. "-" .. i, nil, body)
  end
end
request = function()
  n = n %% #all + 1
  return all[n]
end
`

// wrkChanging makes wrk set one number of replicas after the other, so that each patch changes the object.
const wrkChanging = `
local all, n = {}, 0
init = function(args)
  for i = 1, 50 do
    all[i] = wrk.format(nil, wrk.path, nil, (string.gsub(wrk.body, '"replicas":%d+', '"replicas":' .. i, 1)))
  end
end
request = function()
  n = n % #all + 1
  return all[n]
end
`

// A Generator runs wrk, and h2load for HTTP/2.
type Generator struct {
	dir         string // where the scripts are
	cpus        string
	token       string // of requests as a user
	connections int
	duration    time.Duration
}

// script writes the Lua script that makes wrk send the request. The request is fixed, so that wrk formats it once.
func (g *Generator) script(l Load) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "wrk.method = %s\n", strconv.Quote(l.Method))
	if l.Body != nil {
		if bytes.Contains(l.Body, []byte("]==]")) {
			return "", fmt.Errorf("%s: the body does not fit a Lua string", l.Name)
		}
		fmt.Fprintf(&b, "wrk.headers[\"Content-Type\"] = %q\nwrk.body = [==[%s]==]\n",
			cmp.Or(l.ContentType, "application/json"), l.Body)
	}
	if l.AsUser {
		fmt.Fprintf(&b, "wrk.headers[\"Authorization\"] = %q\n", "Bearer "+g.token)
	}
	if l.IsSpread {
		fmt.Fprintf(&b, wrkSpread, objectName)
	}
	if l.IsChanging {
		b.WriteString(wrkChanging)
	}
	b.WriteString(wrkDone)
	file := filepath.Join(g.dir, regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(l.Name, "-")+".lua")
	return file, os.WriteFile(file, []byte(b.String()), 0o600)
}

// run sends the request for the generator's duration and measures the CPU time that the process uses meanwhile. A rate
// that is not zero is how many are sent in each second. An answer other than 2xx is an error.
func (g *Generator) run(ctx context.Context, rate float64, script, base string, l Load,
	under *Process) (Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, g.duration+30*time.Second)
	defer cancel()
	userBefore, err := under.user()
	if err != nil {
		return Sample{}, err
	}
	before, err := under.cpu()
	if err != nil {
		return Sample{}, err
	}
	command := []string{
		"wrk", "-t1", "-c" + strconv.Itoa(cmp.Or(l.Connections, g.connections)),
		"-d" + strconv.Itoa(max(1, int(g.duration.Seconds()))) + "s", "--timeout", "10s", "-s", script, base + l.Path,
	}
	var log string
	if l.isByH2load() {
		if command, log, err = g.h2load(rate, base+l.Path, l); err != nil {
			return Sample{}, err
		}
	}
	cmd := exec.CommandContext(ctx, "taskset", append([]string{"-c", g.cpus}, command...)...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return Sample{}, fmt.Errorf("%s: %w: %s", command[0], err, complaints.String())
	}
	after, err := under.cpu()
	if err != nil {
		return Sample{}, err
	}
	var sample Sample
	if l.isByH2load() {
		each, failed := os.ReadFile(log)
		if failed != nil {
			return Sample{}, failed
		}
		sample, err = parseH2load(out, each, after-before, l.IsHTTP2)
	} else {
		sample, err = parseWrk(out, after-before)
	}
	if err != nil {
		return Sample{}, err
	}
	user, err := under.user()
	if err != nil {
		return Sample{}, err
	}
	sample.User = float64((user - userBefore).Microseconds()) / float64(sample.Requests)
	sample.MiB, err = under.resident()
	return sample, err
}

// parseWrk reads the line that wrkDone prints.
func parseWrk(out []byte, cpu time.Duration) (Sample, error) {
	start := bytes.IndexByte(out, '{')
	if start < 0 {
		return Sample{}, fmt.Errorf("wrk printed no figures: %s", out)
	}
	var f struct{ Requests, Microseconds, P50, P99, Refused, Broken int }
	if err := json.Unmarshal(out[start:], &f); err != nil {
		return Sample{}, fmt.Errorf("wrk printed %s: %w", out[start:], err)
	}
	if f.Refused > 0 || f.Requests == 0 || f.Microseconds == 0 {
		return Sample{}, fmt.Errorf("%d of %d requests were not answered with a 2xx code", f.Refused, f.Requests)
	}
	return Sample{
		Requests:   f.Requests,
		Throughput: float64(f.Requests) / float64(f.Microseconds) * 1e6,
		P50:        float64(f.P50), P99: float64(f.P99),
		CPU:    float64(cpu.Microseconds()) / float64(f.Requests),
		Broken: f.Broken,
	}, nil
}
