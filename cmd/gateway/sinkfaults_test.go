package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// sinkFaults are the logs of a gateway that go to a file or a pipe, which is called "log" beside the configuration.
var sinkFaults = map[string]struct {
	telemetry string
	check     string // of /readyz
	metric    string // the labels of what failed
	lost      string // the metric of what is lost
	isStderr  bool
	isRefused bool // whether requests are refused meanwhile
	keepsAll  bool // whether nothing is lost as soon
}{
	"audit log": {
		telemetry: `{audit: {log: {path: DIR/log}}}`, check: "audit",
		metric: `log="audit",sink="log"`, lost: `gateway_audit_lost_events_total{sink="log"}`,
	},
	"audit log that blocks": {
		telemetry: `{audit: {mode: Blocking, log: {path: DIR/log}}}`, check: "audit",
		metric: `log="audit",sink="log"`, lost: `gateway_audit_lost_events_total{sink="log"}`, isRefused: true,
		keepsAll: true,
	},
	"decision log": {
		telemetry: `{decisionLogs: {queueBytes: 1048576, maxEventBytes: 65536, log: {path: DIR/log}}}`, check: "decision-logs",
		metric: `log="decisions",sink="log"`,
		lost:   `gateway_decision_log_lost_events_total{reason="QueueFull",sink="log"}`,
	},
	"log": {
		telemetry: `{log: {format: JSON, requests: All}}`, check: "log",
		metric: `log="log",sink="stderr"`, lost: `gateway_log_dropped_lines_total`, isStderr: true,
	},
}

// linesIn returns the lines of a log, each of which has to be whole, and an object of JSON. The last one may be a part
// of a line only while a write fails.
func linesIn(t *testing.T, file string) (all []string) {
	t.Helper()
	var text []byte
	testutil.Eventually(t, "the log ends with a whole line", func() bool {
		var err error
		if text, err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
		return len(text) == 0 || text[len(text)-1] == '\n'
	})
	for line := range strings.Lines(string(text)) {
		if !json.Valid([]byte(line)) {
			t.Fatalf("the log has a line that is not whole: %s", line)
		}
		all = append(all, line)
	}
	return all
}

// value returns the value of a metric; 0 if there is none.
func (p *process) value(t *testing.T, metric string) int {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(metric) + ` (\d+)$`).FindStringSubmatch(
		p.get("/metrics").body)
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// expectFault waits until everything says that a sink fails: the metric, /readyz?verbose, `gateway status`, and the log
// if the sink is another.
func expectFault(t *testing.T, p *logging, check, metric, cause, why string, isStderr, isRefused bool) {
	t.Helper()
	testutil.Eventually(t, "the metric has the cause", func() bool {
		return p.value(t, `gateway_log_write_failures_total{cause="`+cause+`",`+metric+`}`) > 0
	})
	outcome, code := "[+]"+check+" ok, but: ", http.StatusOK
	if isRefused {
		outcome, code = "[-]"+check+" failed: ", http.StatusServiceUnavailable
	}
	var ready reply
	testutil.Eventually(t, "/readyz?verbose has the cause", func() bool {
		ready = p.get("/readyz?verbose")
		return strings.Contains(ready.body, outcome) && strings.Contains(ready.body, why)
	})
	if ready.code != code {
		t.Errorf("/readyz is %d: %s", ready.code, ready.body)
	}
	if status := run("status", "--admin", p.admin); !strings.Contains(status.stdout, why) ||
		!strings.Contains(status.stdout, check) {
		t.Errorf("gateway status says\n%s%s", status.stdout, status.stderr)
	}
	if !isStderr {
		testutil.Eventually(t, "the log has the cause", func() bool {
			return regexp.MustCompile(`msg="the .* log cannot be written" sink=log cause=".*` + why).MatchString(
				p.log.String())
		})
	}
}

// TestFullDiskOfProcess: while the disk is full, each log of a running gateway has whole lines, all that fails and is
// lost is counted and said, and requests are served or refused as the configuration says. With room again the log goes
// on.
func TestFullDiskOfProcess(t *testing.T) {
	t.Parallel()
	for name, sink := range sinkFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := testutil.SmallDisk(t, 16<<20)
			file := filepath.Join(disk, "log")
			p := startLogging(t, t.TempDir(), strings.ReplaceAll(sink.telemetry, "DIR", disk), func(p *process) {
				if !sink.isStderr {
					return
				}
				log, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = log.Close() })
				p.Stderr = log
			})
			p.send(t, 3)
			testutil.Eventually(t, "the first lines are there", func() bool { return len(linesIn(t, file)) >= 3 })
			filler := testutil.FillDisk(t, disk)

			admitted, isRefused := 3, false
			metric := `gateway_log_write_failures_total{cause="ENOSPC",` + sink.metric + `}`
			testutil.Eventually(t, "a write fails", func() bool {
				switch code := p.try(t); {
				case code == http.StatusCreated:
					admitted++
				case sink.isRefused && code == http.StatusServiceUnavailable:
					isRefused = true
				default:
					t.Fatalf("the answer is %d", code)
				}
				return p.value(t, metric) > 0 && isRefused == sink.isRefused
			})
			expectFault(t, p, sink.check, sink.metric, "ENOSPC", "no space left on device", sink.isStderr,
				sink.isRefused)
			linesIn(t, file)
			if !sink.keepsAll {
				testutil.Eventually(t, "something is lost", func() bool {
					p.send(t, 100)
					admitted += 100
					return p.value(t, sink.lost) > 0
				})
			}
			linesIn(t, file)

			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			testutil.Eventually(t, "the sink is well again", func() bool {
				if p.try(t) == http.StatusCreated { // for it has taken something
					admitted++
				}
				time.Sleep(20 * time.Millisecond) // so that the disk does not fill up again
				return strings.Contains(p.get("/readyz?verbose").body, "[+]"+sink.check+" ok\n")
			})
			before := len(linesIn(t, file))
			p.send(t, 3)
			admitted += 3
			testutil.Eventually(t, "the last lines are there", func() bool { return len(linesIn(t, file)) >= before+3 })
			p.signal(t, syscall.SIGTERM)
			if err := p.Wait(); err != nil {
				t.Errorf("the process ends with %v", err)
			}
			all := linesIn(t, file)
			if sink.isStderr {
				said := slices.ContainsFunc(all, func(line string) bool {
					return regexp.MustCompile(`"msg":"the log could not be written","cause":".*no space left on device","times":\d+,"lines":[1-9]`).MatchString(line)
				})
				if !said {
					t.Error("the log does not say that it could not be written")
				}
				return
			}
			ids := map[string]bool{}
			for _, id := range idsIn(t, file) {
				ids[id] = true
			}
			if len(ids) != len(all) || sink.keepsAll && len(ids) < admitted || len(ids) > p.sent {
				t.Errorf("the log has %d lines about %d of %d requests, of which %d were admitted", len(all), len(ids),
					p.sent, admitted)
			}
		})
	}
}

// TestClosedPipeOfProcess: a reader of a log that goes away ends no gateway. All that fails is counted and said, and
// requests are served or refused as the configuration says. The next reader gets whole lines.
func TestClosedPipeOfProcess(t *testing.T) {
	t.Parallel()
	for name, sink := range sinkFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			pipe := filepath.Join(dir, "log")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Skipf("there are no pipes here: %v", err)
			}
			read := func() *os.File {
				t.Helper()
				reader, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
				if err != nil {
					t.Fatal(err)
				}
				return reader
			}
			first := read()
			p := startLogging(t, t.TempDir(), strings.ReplaceAll(sink.telemetry, "DIR", dir), func(p *process) {
				if !sink.isStderr {
					return
				}
				log, err := os.OpenFile(pipe, os.O_WRONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				p.Stderr = log
			})
			if log, isFile := p.Stderr.(*os.File); isFile { // the process has its own
				if err := log.Close(); err != nil {
					t.Fatal(err)
				}
			}
			p.send(t, 3)
			if line, err := bufio.NewReader(first).ReadString('\n'); err != nil || !json.Valid([]byte(line)) {
				t.Errorf("the first line is %q: %v", line, err)
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			metric := `gateway_log_write_failures_total{cause="EPIPE",` + sink.metric + `}`
			isRefused := false
			testutil.Eventually(t, "a write fails", func() bool {
				switch code := p.try(t); {
				case code == http.StatusCreated:
				case sink.isRefused && code == http.StatusServiceUnavailable:
					isRefused = true
				default:
					t.Fatalf("the answer is %d", code)
				}
				return p.value(t, metric) > 0 && isRefused == sink.isRefused
			})
			expectFault(t, p, sink.check, sink.metric, "EPIPE", "broken pipe", sink.isStderr, sink.isRefused)

			second := read()
			defer func() { _ = second.Close() }()
			lines := make(chan string, 1<<16)
			go func() {
				for all := bufio.NewReader(second); ; {
					line, err := all.ReadString('\n')
					if err != nil {
						close(lines)
						return
					}
					lines <- line
				}
			}()
			testutil.Eventually(t, "the sink is well again", func() bool {
				p.try(t)
				time.Sleep(20 * time.Millisecond)
				return strings.Contains(p.get("/readyz?verbose").body, "[+]"+sink.check+" ok\n")
			})
			p.send(t, 3)
			p.signal(t, syscall.SIGTERM)
			if err := p.Wait(); err != nil {
				t.Errorf("the process ends with %v", err)
			}
			count := 0
			for line := range lines {
				if count++; !json.Valid([]byte(line)) && count > 1 {
					// of the first the other reader may have taken a part
					t.Errorf("the line is %q", line)
				}
			}
			if count < 4 {
				t.Errorf("the next reader has %d lines", count)
			}
		})
	}
}

// TestStandardOutputCloses: an audit log on standard output whose reader goes away ends no gateway.
func TestStandardOutputCloses(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := startLogging(t, t.TempDir(), `{audit: {mode: Blocking, log: {path: "-"}}}`,
		func(p *process) { p.Stdout = writer })
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	p.send(t, 1)
	if line, err := bufio.NewReader(reader).ReadString('\n'); err != nil || !json.Valid([]byte(line)) {
		t.Errorf("the line is %q: %v", line, err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "requests are refused", func() bool { return p.try(t) == http.StatusServiceUnavailable })
	expectFault(t, p, "audit", `log="audit",sink="log"`, "EPIPE", "broken pipe", false, true)
	p.signal(t, syscall.SIGTERM)
	if err := p.Wait(); err != nil {
		t.Errorf("the process ends with %v", err)
	}
	if log := p.log.String(); !strings.Contains(log, `msg="events of the audit log are lost" sink=log cause=`) {
		t.Error("the log does not say that events are lost")
	}
}
