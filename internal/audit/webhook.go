package audit

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/admission-gateway/gateway/internal/outbound"
)

// WebhookOptions say where batches of events go.
type WebhookOptions struct {
	// URL is the webhook.
	URL string
	// Network makes connections: it says what is particular to the webhook, and the sink the rest.
	Network outbound.Options
	// Account is who the gateway is to the webhook.
	Account Account
	// MaxEvents bounds the events of one batch.
	MaxEvents int
	// Timeout is for one batch.
	Timeout time.Duration
}

// An Account holds the credentials for a server.
type Account interface {
	// Authorize adds what proves it to a request.
	Authorize(r *http.Request) error
	// Refused is called if the server has not taken it (401).
	Refused() bool
}

// maxBatch bounds the bytes of one batch, unless a single event has more.
const maxBatch = 10 << 20

// A webhook is a sink that posts an EventList for each batch.
type webhook struct {
	client  *http.Client
	options WebhookOptions
	body    []byte
}

// NewWebhook returns a sink that posts events in batches. It does not connect yet.
func NewWebhook(o WebhookOptions) Sink {
	network := o.Network
	network.Timeout = o.Timeout
	return &webhook{client: outbound.New(network), options: o}
}

func (w *webhook) Name() string { return "webhook" }

// Write posts the events in as many batches as needed. A batch that failed is posted again as a whole, so
// that the webhook may get an event twice, as from kube-apiserver.
func (w *webhook) Write(ctx context.Context, lines []byte) (kept int, err error) {
	for kept < len(lines) {
		n := w.batch(lines[kept:])
		if err := w.post(ctx); err != nil {
			return kept, err
		}
		kept += n
	}
	return kept, nil
}

// batch makes the body of the next batch, and returns how many bytes of lines it has.
func (w *webhook) batch(lines []byte) int {
	w.body = append(w.body[:0], `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[`...)
	taken := 0
	for n := 0; taken < len(lines) && n < w.options.MaxEvents; n++ {
		end := taken + bytes.IndexByte(lines[taken:], '\n')
		if n > 0 && len(w.body)+end-taken > maxBatch {
			break
		}
		if n > 0 {
			w.body = append(w.body, ',')
		}
		w.body = append(w.body, lines[taken:end]...)
		taken = end + 1
	}
	w.body = append(w.body, "]}"...)
	return taken
}

func (w *webhook) post(ctx context.Context) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, w.options.URL, bytes.NewReader(w.body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	if err := w.options.Account.Authorize(q); err != nil {
		return err
	}
	a, err := w.client.Do(q)
	if err != nil {
		return err
	}
	defer func() { _ = a.Body.Close() }() // nothing is read of it
	if a.StatusCode == http.StatusUnauthorized {
		w.options.Account.Refused()
	}
	if a.StatusCode/100 != 2 {
		return fmt.Errorf("the webhook answered %d", a.StatusCode)
	}
	return nil
}

func (w *webhook) Close() error {
	w.client.CloseIdleConnections()
	return nil
}
