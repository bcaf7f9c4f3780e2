package audit

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// WebhookOptions say where batches of events go.
type WebhookOptions struct {
	// Kubeconfig is a file that names the webhook's address and the credentials for it, as for
	// kube-apiserver.
	Kubeconfig string
	// MaxEvents bounds the events of one batch.
	MaxEvents int
	// Timeout is for one batch.
	Timeout time.Duration
}

// maxBatch bounds the bytes of one batch, unless a single event has more.
const maxBatch = 10 << 20

// A webhook is a sink that posts an EventList for each batch.
type webhook struct {
	client  *http.Client
	url     string
	options WebhookOptions
	body    []byte
}

// OpenWebhook returns a sink that posts events in batches. It does not connect yet.
func OpenWebhook(o WebhookOptions) (Sink, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.Timeout = o.Timeout
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &webhook{client: client, url: config.Host, options: o}, nil
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
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(w.body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	a, err := w.client.Do(q)
	if err != nil {
		return err
	}
	defer func() { _ = a.Body.Close() }() // nothing is read of it
	if a.StatusCode/100 != 2 {
		return fmt.Errorf("the webhook answered %d", a.StatusCode)
	}
	return nil
}

func (w *webhook) Close() error {
	w.client.CloseIdleConnections()
	return nil
}
