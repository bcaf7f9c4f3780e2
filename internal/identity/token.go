package identity

import (
	"bytes"
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"

	"github.com/admission-gateway/gateway/internal/status"
)

// verifier verifies bearer tokens.
type verifier interface {
	// verify returns the user of a token and when the token expires, the zero time if that is not
	// known. No user is no opinion: the token is not one that the verifier knows. An error that is
	// errUnavailable means that it cannot decide.
	verify(ctx context.Context, token string, by *bearer) (*User, time.Time, error)
}

// bearer is who brings a token to be verified.
type bearer struct {
	client netip.Addr
	// known tokens were valid before, so they are not made up.
	known bool

	failures *failures
	asked    bool // a server was asked about the token
}

// mayAsk returns an error if no server may be asked about the token: the client's address has sent too many that were
// not valid.
func (b *bearer) mayAsk() error {
	b.asked = true
	if b.known {
		return nil
	}
	return b.failures.allow(b.client, time.Now())
}

// errUnavailable means that what a verifier depends on does not answer.
var errUnavailable = errors.New("not available")

// verifyTimeout bounds the verification of a token by all verifiers together.
const verifyTimeout = 10 * time.Second

// maxToken is the size of the largest token that is looked at, in bytes.
const maxToken = 64 << 10

// bearerOf returns the token of the value of Authorization; bearer is false if there is none. What
// follows the scheme and is not one token is a token that no verifier knows.
func bearerOf(authorization []byte) (token []byte, bearer bool) {
	const scheme = "bearer"
	v := bytes.TrimSpace(authorization)
	if len(v) < len(scheme) || !bytes.EqualFold(v[:len(scheme)], []byte(scheme)) || len(v) > len(scheme) &&
		v[len(scheme)] != ' ' {
		return nil, false
	}
	token = v[len(scheme):]
	if len(token) > 0 {
		token = token[1:]
	}
	if len(token) > maxToken || bytes.IndexByte(token, ' ') >= 0 || bytes.IndexByte(token, '\t') >= 0 {
		token = nil
	}
	return token, true
}

// tokens remembers which bearer tokens are whose. It keeps none of them: a token is known by its
// GMAC with a secret key, which for a token of 1 KB takes a third of the time of SHA-256. That each
// has the same nonce does no harm: only this process ever sees one, and without seeing one, finding
// tokens of the same is as unlikely as 2^-120.
type tokens struct {
	o        TokenOptions
	methods  []method
	mac      cipher.AEAD
	hashers  sync.Pool // of *hasher
	shards   [tokenShards]tokenShard
	flight   singleflight.Group
	failures *failures
}

const tokenShards = 32

// tokenShard is a part of the memory, with a lock of its own. Valid and invalid tokens are kept
// apart, so that a made-up token never pushes out a valid one.
type tokenShard struct {
	mu             sync.Mutex
	valid, invalid *simplelru.LRU[tokenID, tokenResult]
}

type tokenID [16]byte

// tokenResult is the answer for a token: its user, or that it has none.
type tokenResult struct {
	principal *Principal
	until     int64 // nanoseconds since 1970
	by        int32 // the method that knew it
}

// hasher is memory for one computation.
type hasher struct {
	nonce [12]byte
	id    tokenID
}

func newTokens(o TokenOptions, methods []method) (*tokens, error) {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	mac, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	o.Entries = cmp.Or(o.Entries, DefaultEntries)
	o.TTL, o.ReviewTTL = cmp.Or(o.TTL, DefaultTTL), cmp.Or(o.ReviewTTL, DefaultReviewTTL)
	o.FailureTTL = cmp.Or(o.FailureTTL, DefaultFailureTTL)
	t := &tokens{o: o, methods: methods, mac: mac,
		failures: newFailures(cmp.Or(o.Failures, DefaultFailures), cmp.Or(o.Burst, DefaultBurst))}
	t.hashers.New = func() any { return new(hasher) }
	for i := range t.shards {
		s, n := &t.shards[i], max(1, (o.Entries+tokenShards-1)/tokenShards)
		// They fail only for a size that is not positive.
		s.valid, _ = simplelru.NewLRU[tokenID, tokenResult](n, nil)
		s.invalid, _ = simplelru.NewLRU[tokenID, tokenResult](n, nil)
	}
	return t, nil
}

// find returns the user of a token, from memory or by asking the verifiers. An error means that
// they cannot decide, or will not now.
func (t *tokens) find(a *Authenticators, token []byte, r *Request) (tokenResult, error) {
	if len(token) == 0 {
		return tokenResult{}, nil
	}
	h := t.hashers.Get().(*hasher)
	t.mac.Seal(h.id[:0], h.nonce[:], nil, token)
	result, found := t.recall(&h.id, r.Now.UnixNano())
	if found == fresh {
		t.hashers.Put(h)
		return result, nil
	}
	id := h.id
	t.hashers.Put(h)
	return t.ask(a, id, string(token), r)
}

// memory is a remembered answer about a token.
type memory uint8

const (
	nothing memory = iota
	stale          // it was valid
	fresh          // the result counts
)

// recall looks a token up.
func (t *tokens) recall(id *tokenID, now int64) (tokenResult, memory) {
	s := &t.shards[id[0]%tokenShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if result, found := s.valid.Get(*id); found {
		if now < result.until {
			return result, fresh
		}
		return tokenResult{}, stale
	}
	if result, found := s.invalid.Get(*id); found {
		if now < result.until {
			return result, fresh
		}
		s.invalid.Remove(*id)
	}
	return tokenResult{}, nothing
}

func (t *tokens) remember(id *tokenID, result tokenResult) {
	s := &t.shards[id[0]%tokenShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if result.principal != nil {
		s.valid.Add(*id, result)
		return
	}
	s.valid.Remove(*id)
	s.invalid.Add(*id, result)
}

// ask asks the verifiers, once for all requests that bring the token at the same time.
func (t *tokens) ask(a *Authenticators, id tokenID, token string, r *Request) (tokenResult, error) {
	ctx := r.Context
	if ctx == nil {
		ctx = context.Background()
	}
	client := r.Client
	asked := t.flight.DoChan(string(id[:]), func() (_ any, failed error) {
		// which goes on for the others if a client leaves
		defer func() {
			if p := recover(); p != nil {
				failed = &panicked{p}
			}
		}()
		result, found := t.recall(&id, time.Now().UnixNano())
		if found == fresh {
			return result, nil
		}
		by := &bearer{client: client, known: found == stale, failures: t.failures}
		result, err := t.verify(context.WithoutCancel(ctx), a, token, by)
		if err == nil {
			t.remember(&id, result)
		}
		if err == nil && result.principal == nil && by.asked {
			t.failures.add(client, time.Now())
		}
		return result, err
	})
	select {
	case answer := <-asked:
		if p, is := answer.Err.(*panicked); is {
			panic(p.with)
		}
		if answer.Err != nil {
			return tokenResult{}, answer.Err
		}
		return answer.Val.(tokenResult), nil
	case <-ctx.Done():
		return tokenResult{}, context.Cause(ctx)
	}
}

// A panicked verification panics for each request that waits for it.
type panicked struct{ with any }

// Error implements error.
func (p *panicked) Error() string { return "the verification of a token panicked" }

// verify asks one verifier after the other. If one cannot decide and no other knows the token, the
// token stays undecided.
func (t *tokens) verify(ctx context.Context, a *Authenticators, token string, by *bearer) (tokenResult, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	var failure error
	var causes []refusalCause
	for i := range t.methods {
		m := &t.methods[i]
		if m.token == nil {
			continue
		}
		user, expires, err := m.token.verify(ctx, token, by)
		if user != nil && err == nil {
			return t.resultOf(i, *user, expires), nil
		}
		if err == nil {
			continue
		}
		var own *status.Error
		switch {
		case errors.Is(err, errUnavailable):
			failure = cmp.Or[error](failure,
				status.ServiceUnavailable("the gateway cannot tell now whose the bearer token is", 1))
		case errors.As(err, &own):
			failure = own
			continue
		}
		causes = append(causes, refusalCause{m.name, err})
	}
	for _, c := range causes {
		a.refused(c.method, c.err.Error())
	}
	if failure != nil {
		return tokenResult{}, failure
	}
	return tokenResult{until: time.Now().Add(t.o.FailureTTL).UnixNano()}, nil
}

// refusalCause is why a method refused credentials.
type refusalCause struct {
	method string
	err    error
}

// resultOf returns the result for a token whose user the method at that place knows.
func (t *tokens) resultOf(at int, u User, expires time.Time) tokenResult {
	ttl := t.o.TTL
	if t.methods[at].review {
		ttl = t.o.ReviewTTL
	}
	until := time.Now().Add(ttl)
	if !expires.IsZero() && expires.Before(until) {
		until = expires
	}
	return tokenResult{principal: NewPrincipal(known(u)), by: int32(at), until: until.UnixNano()}
}
