package kubernetes

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// An ordinary API ignores `dryRun=All` and carries out the request. A backend therefore proves
// that it is an API server before the gateway sends the first dry run to it: it answers GET /version with the
// version of a Kubernetes API server, or, to credentials that may not read it, with a Status.
//
// The proof holds for all servers of an upstream, which are one backend by its configuration: the server that
// gets the next request is drawn at random, so that a proof for one of them could not be used. It holds for one
// Host alone, for a proxy before the API server may lead another Host to another API, and the Host is the
// client's to choose.

const (
	// provedFor is how long a proof counts. A name may lead to another backend one day.
	provedFor = 10 * time.Minute
	// refutedFor is how long the lack of one counts. It bounds what clients can make the gateway ask.
	refutedFor = time.Second
	// maxProofs bounds how many hosts of an upstream are remembered.
	maxProofs = 128
	// proofTimeout bounds the wait for the answer. No client's own deadline does, for others wait for the same answer.
	proofTimeout = 10 * time.Second
	// maxVersionAnswer is the size of the largest answer that is read.
	maxVersionAnswer = 64 << 10
)

var targetVersion = []byte("/version")

// Proofs remember for which hosts an upstream has proved to be an API server.
type Proofs struct {
	// Lacking is called if there is no proof.
	Lacking func(lack error)

	flight singleflight.Group // one question for each host at a time
	mu     sync.Mutex
	hosts  *simplelru.LRU[string, proof]
}

// A proof is the answer of an upstream.
type proof struct {
	lack  error // why the proof failed; nil if it did not
	until time.Time
}

// recall returns what is remembered of a host.
func (p *Proofs) recall(host string, now time.Time) (lack error, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hosts == nil {
		return nil, false
	}
	known, found := p.hosts.Get(host)
	return known.lack, found && now.Before(known.until)
}

// Knows reports whether anything is remembered of a host.
func (p *Proofs) Knows(host string) bool {
	_, found := p.recall(host, time.Now())
	return found
}

func (p *Proofs) remember(host string, lack error, now time.Time) {
	until := now.Add(provedFor)
	if lack != nil {
		until = now.Add(refutedFor)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hosts == nil {
		p.hosts, _ = simplelru.NewLRU[string, proof](maxProofs, nil) // fails only for a size that is not positive
	}
	p.hosts.Add(host, proof{lack, until})
}

// prove makes sure that the backend is an API server, which carries out no dry run. The error is the answer that the
// client is answered with instead.
func (p *Proofs) prove(e *storage.Exchanges, b *storage.Backend) error {
	host := string(bytes.ToLower(e.Head.Host))
	if lack, found := p.recall(host, time.Now()); found {
		return lack
	}
	head := e.OwnHead(targetVersion) // the question may outlive the request
	answered := p.flight.DoChan(host, func() (any, error) { return nil, p.askVersion(b, host, head) })
	var passed <-chan time.Time
	if deadline := e.Deadline(); !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		passed = timer.C
	}
	select {
	case result := <-answered:
		return result.Err
	case <-passed:
		return status.Timeout("the request was over before the backend had shown that it is a Kubernetes API server", 1)
	}
}

// askVersion asks for the proof, and remembers an answer that decides.
func (p *Proofs) askVersion(b *storage.Backend, host string, head []byte) error {
	now := time.Now()
	if lack, found := p.recall(host, now); found {
		return lack // another request asked in between
	}
	var answer message.Response
	err := b.Client.Do(&upstream.Request{Head: head, Idempotent: true, Whole: maxVersionAnswer,
		Deadline: now.Add(proofTimeout)}, &answer)
	var failed *upstream.Error
	if errors.As(err, &failed) && failed.Kind != upstream.TooLarge {
		return err // which says nothing of what the backend is
	}
	var lack error
	switch code := answer.Status(); {
	case err != nil:
		lack = notProved("more than %d bytes", maxVersionAnswer)
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		return status.FromBackend(status.ErrorResponse{
			Code: code, ContentType: string(answer.Header("Content-Type")),
			RetryAfter: string(answer.Header("Retry-After")), Body: answer.Body(),
		})
	case !isServersVersion(&answer):
		lack = notProved("the code %d and no version of Kubernetes", code)
	}
	p.remember(host, lack, time.Now())
	if lack != nil {
		p.Lacking(lack)
	}
	return lack
}

// isServersVersion reports whether a Kubernetes API server may have answered GET /version so.
func isServersVersion(answer *message.Response) bool {
	return answer.IsJSON() && IsVersion(answer.Status(), answer.Body())
}

// IsVersion reports whether a code and a JSON body are the answer of a Kubernetes API server to GET /version.
func IsVersion(code int, body []byte) bool {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return status.IsStatus(body)
	case http.StatusOK:
	default:
		return false
	}
	version, err := document.Parse(body, document.Limits{Bytes: maxVersionAnswer})
	if err != nil {
		return false
	}
	defer version.Release()
	for _, name := range [...]string{"major", "minor", "gitVersion"} {
		if member, found := version.Root().Get(name); !found || member.Kind() != document.String {
			return false // a build without a release has an empty major and minor
		}
	}
	return storage.TextIn(version.Root(), "gitVersion") != ""
}

// notProved returns the refusal of a dry run.
func notProved(format string, args ...any) error {
	return status.BadGateway("the backend has not proved to be a Kubernetes API server, so that it could carry out what a dry run only asks about; " +
		"nothing was sent. GET /version was answered with " + fmt.Sprintf(format, args...) +
		". Before an ordinary API the upstream must have `dialect: Plain` (--dialect Plain)")
}
