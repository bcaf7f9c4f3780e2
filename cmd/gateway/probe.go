package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/internal/outbound"
	"github.com/admission-gateway/gateway/internal/storage/plain"
)

const (
	// probeTimeout bounds each request of a probe, maxProbed the object that it reads.
	probeTimeout = 10 * time.Second
	maxProbed    = 16 << 20
)

// probe finds out whether a backend compares If-Match: it writes the object at a URL back as it was
// read, with a wrong If-Match, which a backend that compares refuses. It returns a report for the
// operator.
func probe(ctx context.Context, url string) (string, error) {
	// as backends are asked
	client := outbound.New(outbound.Options{Timeout: probeTimeout, MaxBytes: maxProbed, Direct: true})
	read, object, err := askBackend(ctx, client, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	if read.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s is answered %s: name the URL of an object that may be read and written", url,
			read.Status)
	}
	header := http.Header{"If-Match": {string(plain.ProbeETag())}, "Content-Type": {read.Header.Get("Content-Type")}}
	written, _, err := askBackend(ctx, client, http.MethodPut, url, header, object...)
	if err != nil {
		return "", err
	}
	etag := "no ETag"
	switch tag := read.Header.Get("ETag"); {
	case strings.HasPrefix(tag, "W/"):
		etag = "a weak ETag, which If-Match never matches"
	case tag != "":
		etag = "a strong ETag"
	}
	switch code := written.StatusCode; {
	case code == http.StatusPreconditionFailed && etag == "a strong ETag":
		return fmt.Sprintf("%s: the backend gives %s and compares If-Match (412): no update is lost", url, etag), nil
	case code == http.StatusPreconditionFailed:
		return fmt.Sprintf("%s: the backend compares If-Match (412), but gives %s: writes cannot be pinned to a version", url, etag), nil
	case code < 300:
		return fmt.Sprintf("%s: the backend gives %s and does not compare If-Match (it answered %d): only the gateway keeps writers apart, and several need `redis`", url, etag, code), nil
	}
	return "", fmt.Errorf("%s: a PUT of the object as it was read is answered %s, so that nobody knows whether If-Match is compared", url, written.Status)
}

// askBackend sends a request and reads the answer.
func askBackend(ctx context.Context, client *http.Client, method, url string, header http.Header,
	body ...byte) (*http.Response, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	var large *outbound.TooLargeError
	if errors.As(err, &large) {
		err = fmt.Errorf("%s: the object is larger than %d bytes", url, large.MaxBytes)
	}
	return answer, text, err
}
