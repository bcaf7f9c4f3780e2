// Package access asks Kubernetes API servers what users may do, by SubjectAccessReviews that the gateway's own account
// makes, and by SelfSubjectAccessReviews that are made with a client's own credentials. Answers are remembered for a
// short while, a yes and a no alike, and equal questions are asked once at a time.
package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const (
	// Remembered is how long an answer counts.
	Remembered = 10 * time.Second
	// MaxRemembered is how many answers are remembered, the latest used ones.
	MaxRemembered = 8192
	// MaxTried is how many questions [Reviews.Try] asks at a time, and MaxWait how long another one waits for a place
	// among them.
	MaxTried = 32
	MaxWait  = time.Second
	// Timeout bounds one question, however long those who wait for its answer would.
	Timeout = 5 * time.Second
	// MaxAnswer is the size of the largest answer to read, in bytes.
	MaxAnswer = 1 << 20

	// maxText is the length of the longest reason or name that is remembered, in bytes.
	maxText = 4 << 10
)

var (
	// ErrBusy is the error of a question that is not asked because too many are.
	ErrBusy = errors.New("too many questions about access are being asked at the moment")

	errOver    = errors.New("the backend did not answer before the request was over")
	errNotJSON = errors.New("the backend's answer cannot be read")
)

// A Refusal is the error of a question that the server answers with an error. Like any answer, it
// is remembered if the server forbids the question.
type Refusal struct {
	Code int
	// lacks is what the gateway's own account would need, if it has asked.
	lacks string
}

// Error implements error.
func (r *Refusal) Error() string {
	if text := http.StatusText(r.Code); text != "" {
		return fmt.Sprintf("the backend answered %d %s%s", r.Code, text, r.lacks)
	}
	return fmt.Sprintf("the backend answered %d", r.Code)
}

// A Post sends a review to its target on one server and returns the answer's code and body. It is called in a goroutine
// that may outlive the request.
type Post func(ctx context.Context, target string, body []byte) (code int, answer []byte, err error)

// A ReviewResponse is what a server answers to a review.
type ReviewResponse struct {
	Verdict authorizer.Decision
	Reason  string
	// User is the name that the server knows the asker by, of a question made by [Reviews.Who].
	User string
}

// unknown is the answer beside an error.
var unknown = ReviewResponse{Verdict: authorizer.DecisionNoOpinion}

// Reviews asks, and remembers what was answered. It is safe for concurrent use.
type Reviews struct {
	secret [sha256.Size]byte // of the keys, which are made of credentials too

	mu     sync.Mutex
	known  *simplelru.LRU[key, entry]
	active map[key]*call

	tried chan struct{} // holds one for each question that Try asks
	// refused is until when an answer other than yes is remembered, in nanoseconds of Unix time.
	refused atomic.Int64
}

// key identifies the question.
type key struct {
	server any
	digest [sha256.Size]byte
}

type entry struct {
	answer ReviewResponse
	err    error
	until  time.Time
}

// call is a question that is being asked.
type call struct {
	done   chan struct{}
	answer ReviewResponse
	err    error
}

// New returns reviews that remember nothing yet.
func New() *Reviews {
	r := &Reviews{active: map[key]*call{}, tried: make(chan struct{}, MaxTried)}
	_, _ = rand.Read(r.secret[:]) // never fails
	r.known, _ = simplelru.NewLRU[key, entry](MaxRemembered, nil)
	return r
}

// A ReviewRequest is one review, to be sent to one server.
type ReviewRequest struct {
	key    key
	target string
	body   []byte
	post   Post
	read   func(body []byte) (ReviewResponse, error)
}

// Targets of reviews.
const (
	SubjectTarget = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	SelfTarget    = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	WhoTarget     = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
)

// Subject is the question whether the user of the attributes may do what they say, asked by the gateway's own account.
// The server is any comparable value that stands for the one that post asks.
func (r *Reviews) Subject(server any, post Post, about authorizer.Attributes) (*ReviewRequest, error) {
	return r.question(server, nil, post, SubjectTarget, subjectReview(about), readSubject)
}

// Self is the question whether the owner of the credentials may do what the attributes say. Post
// shows these credentials.
func (r *Reviews) Self(server any, credentials []byte, post Post, about authorizer.Attributes) (*ReviewRequest, error) {
	return r.question(server, credentials, post, SelfTarget, selfReview(about), readSubject)
}

// Who is the question for the name of the owner of the credentials. Post shows them.
func (r *Reviews) Who(server any, credentials []byte, post Post) (*ReviewRequest, error) {
	review := &authenticationv1.SelfSubjectReview{}
	review.SetGroupVersionKind(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"))
	return r.question(server, credentials, post, WhoTarget, review, readWho)
}

func (r *Reviews) question(server any, credentials []byte, post Post, target string, review any,
	read func([]byte) (ReviewResponse, error)) (*ReviewRequest, error) {
	body, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	q := &ReviewRequest{key: key{server: server}, target: target, body: body, post: post, read: read}
	digest := hmac.New(sha256.New, r.secret[:])
	for _, part := range [][]byte{[]byte(target), body, credentials} {
		digest.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		digest.Write(part)
	}
	digest.Sum(q.key.digest[:0])
	return q, nil
}

// ID distinguishes the question from all others of the same server.
func (q *ReviewRequest) ID() [sha256.Size]byte { return q.key.digest }

// Remember returns what is remembered of a question, and whether anything is.
func (r *Reviews) Remember(q *ReviewRequest) (ReviewResponse, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.known.Get(q.key)
	if !ok || e.err != nil || !time.Now().Before(e.until) {
		return unknown, false
	}
	return e.answer, true
}

// Refuses reports whether any answer other than yes may be remembered. It costs next to nothing.
func (r *Reviews) Refuses() bool {
	until := r.refused.Load()
	return until != 0 && time.Now().UnixNano() < until
}

// Ask returns the answer to a question: a remembered one, or the server's.
func (r *Reviews) Ask(ctx context.Context, q *ReviewRequest) (ReviewResponse, error) {
	return r.join(ctx, q, nil).wait(ctx)
}

// Try is Ask for questions that any client can cause: so many of them are asked at a time, and the
// error of one that does not get its turn is [ErrBusy].
func (r *Reviews) Try(ctx context.Context, q *ReviewRequest) (ReviewResponse, error) {
	return r.join(ctx, q, r.tried).wait(ctx)
}

// join returns the call that brings the answer, which is over already if the answer is remembered.
// A new one needs a place among the slots, if there are any.
func (r *Reviews) join(ctx context.Context, q *ReviewRequest, slots chan struct{}) *call {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.known.Get(q.key); ok && time.Now().Before(e.until) {
		return &call{done: closed, answer: e.answer, err: e.err}
	}
	if c, ok := r.active[q.key]; ok {
		return c
	}
	c := &call{done: make(chan struct{})}
	r.active[q.key] = c
	go r.ask(context.WithoutCancel(ctx), q, c, slots)
	return c
}

// closed is the channel of calls that are over.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (c *call) wait(ctx context.Context) (ReviewResponse, error) {
	select {
	case <-c.done:
		return c.answer, c.err
	case <-ctx.Done():
		return unknown, errOver
	}
}

// ask asks the server. The time limit is the question's own, so that one impatient client does not spoil it for others.
// The question is in the trace of the client that came first.
func (r *Reviews) ask(ctx context.Context, q *ReviewRequest, c *call, slots chan struct{}) {
	c.answer, c.err = unknown, ErrBusy
	var asked time.Time
	if take(slots) {
		asked = time.Now()
		c.answer, c.err = q.ask(ctx)
		release(slots)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(c.done)
	delete(r.active, q.key)
	var refusal *Refusal
	if c.err != nil && !(errors.As(c.err, &refusal) &&
		(refusal.Code == http.StatusUnauthorized || refusal.Code == http.StatusForbidden)) ||
		len(c.answer.Reason) > maxText || len(c.answer.User) > maxText {
		return
	}
	until := asked.Add(Remembered)
	r.known.Add(q.key, entry{answer: c.answer, err: c.err, until: until})
	if c.err == nil && c.answer.Verdict != authorizer.DecisionAllow {
		r.refused.Store(max(r.refused.Load(), until.UnixNano()))
	}
}

// take waits for a place among the slots, and reports whether there is one.
func take(slots chan struct{}) bool {
	if slots == nil {
		return true
	}
	timer := time.NewTimer(MaxWait)
	defer timer.Stop()
	select {
	case slots <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

func release(slots chan struct{}) {
	if slots != nil {
		<-slots
	}
}

func (q *ReviewRequest) ask(ctx context.Context) (ReviewResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	code, body, err := q.post(ctx, q.target, q.body)
	switch {
	case err != nil:
		return unknown, err
	case code != http.StatusOK && code != http.StatusCreated:
		refusal := &Refusal{Code: code}
		if q.target == SubjectTarget {
			refusal.lacks = Lacking(code, http.MethodPost, q.target)
		}
		return unknown, refusal
	}
	return q.read(body)
}

var errBothWays = errors.New("the backend both allowed and denied it")

// readSubject reads the status that all reviews of access have.
func readSubject(body []byte) (ReviewResponse, error) {
	var review authorizationv1.SubjectAccessReview
	if err := json.Unmarshal(body, &review); err != nil || review.Kind != "SubjectAccessReview" &&
		review.Kind != "SelfSubjectAccessReview" {
		return unknown, errNotJSON
	}
	switch s := review.Status; {
	case s.Denied && s.Allowed:
		return ReviewResponse{Verdict: authorizer.DecisionDeny, Reason: s.Reason}, errBothWays
	case s.Denied:
		return ReviewResponse{Verdict: authorizer.DecisionDeny, Reason: s.Reason}, nil
	case s.Allowed:
		return ReviewResponse{Verdict: authorizer.DecisionAllow, Reason: s.Reason}, nil
	default:
		return ReviewResponse{Verdict: authorizer.DecisionNoOpinion, Reason: s.Reason}, nil
	}
}

func readWho(body []byte) (ReviewResponse, error) {
	var review authenticationv1.SelfSubjectReview
	if err := json.Unmarshal(body, &review); err != nil || review.Kind != "SelfSubjectReview" ||
		review.Status.UserInfo.Username == "" {
		return unknown, errNotJSON
	}
	return ReviewResponse{Verdict: authorizer.DecisionAllow, User: review.Status.UserInfo.Username}, nil
}
