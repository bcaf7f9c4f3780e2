package main

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/telemetry"
)

// TestSinkReport: what is lost and what fails has its cause in the log and in metrics.
func TestSinkReport(t *testing.T) {
	metrics, err := telemetry.New(telemetry.Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	r := newSinkReport("audit log", "audit", metrics, slog.New(slog.NewTextHandler(&log, nil)))
	full := errors.Join(errors.New("write audit.log"), syscall.ENOSPC)
	r.failed("log", full)
	r.failed("log", full)
	for range 4250 {
		r.lost.Add("log", 1, "full")
	}
	r.lost.Close()
	want := `level=ERROR msg="the audit log cannot be written" sink=log cause="write audit.log\nno space left on device" times=1
level=ERROR msg="events of the audit log are lost" sink=log cause=full events=1
level=ERROR msg="events of the audit log are lost" sink=log cause=full events=4249
`
	if got := regexp.MustCompile(`time=\S+ `).ReplaceAllString(log.String(), ""); got != want {
		t.Errorf("the log has\n%s\nwant\n%s", got, want)
	}
	answer := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if want := `gateway_log_write_failures_total{cause="ENOSPC",log="audit",sink="log"} 2`; !strings.Contains(
		answer.Body.String(), want) {
		t.Errorf("the metrics lack %s", want)
	}
}

// TestHealthOfSinks: a sink that fails makes the gateway unready only if requests are refused for it.
func TestHealthOfSinks(t *testing.T) {
	broken := []audit.State{{Sink: "log", Failure: syscall.ENOSPC}, {Sink: "webhook"}}
	if err := healthOf(broken[1:], true); err != nil {
		t.Errorf("a sink that works: %v", err)
	}
	if err := healthOf(broken, true); err == nil || err.Error() != "log: no space left on device" {
		t.Errorf("while requests are refused: %v", err)
	}
	var warning admin.Warning
	if err := healthOf(broken, false); !errors.As(err, &warning) || warning.Error() != "log: no space left on device" {
		t.Errorf("while requests are served: %v", err)
	}
}
