package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// h2load's connections, and the streams on each.
const h2Connections, h2Streams = 10, 10

// isByH2load reports whether h2load sends the load: wrk speaks no HTTP/2, and does not keep to a rate.
func (l *Load) isByH2load() bool { return l.IsHTTP2 || l.PacedBy != "" }

// h2load returns the command that sends a request over and over for the generator's duration, so often in each second
// if the rate is not zero, and the file to which it writes how long each took.
func (g *Generator) h2load(rate float64, url string, l Load) (command []string, log string, err error) {
	dir := g.dir
	log = filepath.Join(dir, "h2load.log")
	_ = os.Remove(log) // of the run before
	command = []string{"h2load", "-t1", "-D" + strconv.Itoa(max(1, int(g.duration.Seconds()))), "--log-file=" + log}
	if l.IsHTTP2 {
		command = append(command, "-c"+strconv.Itoa(h2Connections), "-m"+strconv.Itoa(h2Streams))
	} else {
		command = append(command, "--h1", "-c"+strconv.Itoa(g.connections))
	}
	if rate > 0 {
		command = append(command, fmt.Sprintf("--rps=%.2f", rate/float64(g.connections)))
	}
	for _, h := range l.headers() {
		command = append(command, "-H", h)
	}
	if l.Body != nil {
		body := filepath.Join(dir, "h2load.body")
		if err := os.WriteFile(body, l.Body, 0o600); err != nil {
			return nil, "", err
		}
		command = append(command, "-d", body)
	}
	return append(command, url), log, nil
}

var (
	h2Protocol = regexp.MustCompile(`(?m)^Application protocol: (\S+)$`)
	h2Finished = regexp.MustCompile(`(?m)^finished in [^,]+, ([0-9.]+) req/s`)
	h2Requests = regexp.MustCompile(`(?m)^requests: (\d+) total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed`)
	h2Codes    = regexp.MustCompile(`(?m)^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx$`)
)

// parseH2load reads what h2load prints, and its file with the code and the microseconds of each request.
func parseH2load(out, log []byte, cpu time.Duration, isHTTP2 bool) (Sample, error) {
	protocol, finished, requests, codes := h2Protocol.FindSubmatch(out), h2Finished.FindSubmatch(out),
		h2Requests.FindSubmatch(out), h2Codes.FindSubmatch(out)
	if protocol == nil || finished == nil || requests == nil || codes == nil {
		return Sample{}, fmt.Errorf("h2load printed no figures: %s", out)
	}
	number := func(text []byte) int {
		n, _ := strconv.Atoi(string(text)) // digits, as the expressions have them
		return n
	}
	done, failed := number(requests[2]), number(requests[4])
	switch {
	case isHTTP2 == (string(protocol[1]) == "http/1.1"):
		return Sample{}, fmt.Errorf("h2load spoke %s", protocol[1])
	case failed > 0 || done == 0 || number(codes[1]) < done:
		return Sample{}, fmt.Errorf("of %d requests %d failed: %s", done, failed, codes[0])
	}
	throughput, err := strconv.ParseFloat(string(finished[1]), 64)
	if err != nil {
		return Sample{}, err
	}
	sample := Sample{Requests: done, Throughput: throughput, CPU: float64(cpu.Microseconds()) / float64(done)}
	var took []float64
	for line := range bytes.Lines(log) {
		fields := bytes.Fields(line)
		if len(fields) < 3 {
			continue
		}
		n, err := strconv.ParseFloat(string(fields[2]), 64)
		if err != nil {
			return Sample{}, fmt.Errorf("h2load wrote %q: %w", line, err)
		}
		took = append(took, n)
	}
	if slices.Sort(took); len(took) > 0 {
		sample.P50, sample.P99 = took[len(took)/2], took[len(took)*99/100]
	}
	return sample, nil
}
