package decisions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/outbound"
)

// A Service takes events by OPA's protocol: lists in JSON, compressed by gzip.
type Service struct {
	// URL is the service; events are posted to logs below it, or to logs/PARTITION.
	URL, Partition string
	// Network makes connections: it says what is particular to the service, and Service the rest.
	Network outbound.Options
	// Token returns the bearer token; nil or empty: there is none.
	Token func() string
	// Timeout bounds one answer.
	Timeout time.Duration
	// Limit bounds the bytes of one body.
	Limit int
	// Patience bounds how long the service may ask to be left alone.
	Patience time.Duration
	// Dropped is called with events that the service will never have.
	Dropped func(sink string, events int, why Reason)
	// Sent is called with each body, and whether the service accepted it.
	Sent func(ok bool)
}

// ServiceName is the service's name among sinks.
const ServiceName = "service"

// Sink returns the sink.
func (s *Service) Sink() audit.Sink {
	o := s.Network
	o.Timeout = s.Timeout
	return &service{Service: s, to: s.target(), client: outbound.New(o), chunks: newChunks(s.Limit)}
}

func (s *Service) target() string {
	to := strings.TrimSuffix(s.URL, "/") + "/logs"
	if s.Partition != "" {
		to += "/" + url.PathEscape(s.Partition)
	}
	return to
}

type service struct {
	*Service
	to     string
	client *http.Client
	chunks *chunks
}

// Name implements audit.Sink.
func (s *service) Name() string { return ServiceName }

// Close implements audit.Sink.
func (s *service) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// Write implements audit.Sink. A body that failed is sent again, so that the service may get an event
// twice, as from OPA.
func (s *service) Write(ctx context.Context, lines []byte) (kept int, err error) {
	for kept < len(lines) {
		body, taken, events := s.chunks.next(lines[kept:])
		if events == 0 {
			s.Dropped(ServiceName, 1, TooLarge)
			kept += taken
			continue
		}
		err := s.post(ctx, body)
		s.Sent(err == nil)
		switch {
		case errors.Is(err, errRefused):
			s.Dropped(ServiceName, events, Refused)
		case err != nil:
			return kept, err
		}
		kept += taken
	}
	return kept, nil
}

// errRefused is the error of a body that would not be taken later either.
var errRefused = errors.New("the service does not take the events")

func (s *service) post(ctx context.Context, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Content-Encoding", "gzip")
	if s.Token != nil {
		if token := s.Token(); token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it says nothing
	_, _ = io.CopyN(io.Discard, response.Body, 4<<10)
	switch code := response.StatusCode; code {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: it answered with code %d", errRefused, code)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		s.rest(ctx, response.Header.Get("Retry-After"))
		return fmt.Errorf("the service answered with code %d", code)
	default:
		if code/100 != 2 {
			return fmt.Errorf("the service answered with code %d", code)
		}
		return nil
	}
}

// rest leaves the service alone for as long as it asks for.
func (s *service) rest(ctx context.Context, seconds string) {
	n, err := strconv.Atoi(seconds)
	if err != nil || n <= 0 {
		return
	}
	t := time.NewTimer(min(time.Duration(n)*time.Second, s.Patience))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
