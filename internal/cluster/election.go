package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/state"
)

// How long a Lease lasts, how often it is renewed or asked for, and how long this may take: as of client-go's
// elections.
const (
	leaseSeconds = 15
	renewPeriod  = 2 * time.Second
	leaseTimeout = 5 * time.Second
	// leaseMargin is how much earlier than the others a gateway believes that its Lease is over.
	leaseMargin = 5 * time.Second
)

// election finds the one gateway of several that writes, by a Lease. Clocks need not agree: a Lease is over if its
// holder has not changed it for as long as it lasts, by the clock of whoever looks.
type election struct {
	client  *client
	options Options
	path    string
	until   atomic.Int64 // when this gateway's Lease is over, in nanoseconds of Unix time; 0: it has none

	seen   coordinationv1.LeaseSpec // as it was read last
	seenAt time.Time
}

func newElection(c *client, o Options) election {
	return election{client: c, options: o, path: "/apis/coordination.k8s.io/v1/namespaces/" + o.Lease.Namespace +
		"/leases"}
}

// leads reports whether this gateway writes.
func (e *election) leads() bool { return time.Now().UnixNano() < e.until.Load() }

// run asks for the Lease until ctx is done, and calls won whenever this gateway gets it. It gives it back in the end.
func (e *election) run(ctx context.Context, won func()) {
	failure := ""
	for {
		led := e.leads()
		err := e.ask(ctx)
		switch {
		case err != nil && ctx.Err() == nil && err.Error() != failure:
			e.options.Log.Warn("the Lease of the gateway that writes statuses cannot be read or written", "lease",
				e.options.Lease.String(), "cause", err)
			failure = err.Error()
		case err == nil:
			failure = ""
		}
		if leads := e.leads(); leads != led {
			e.options.Log.Info("the gateway that writes statuses has changed", "lease", e.options.Lease.String(),
				"isThisOne", leads)
			if leads {
				won()
			}
		}
		if !pause(ctx, renewPeriod) {
			e.release(context.WithoutCancel(ctx))
			return
		}
	}
}

// ask takes or renews the Lease if this gateway has it, or if no gateway does.
func (e *election) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	asked := time.Now()
	lease, err := e.read(ctx)
	if err != nil {
		return err
	}
	if lease == nil {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: e.options.Lease.Name,
			Namespace: e.options.Lease.Namespace}}
	}
	e.look(&lease.Spec, asked)
	holder := value(lease.Spec.HolderIdentity)
	if isFree := holder == "" ||
		asked.After(
			e.seenAt.Add(
				time.Duration(value(lease.Spec.LeaseDurationSeconds))*time.Second)); holder != e.options.Identity &&
		!isFree {
		e.until.Store(0)
		return nil
	}
	now, seconds := metav1.NewMicroTime(asked), int32(leaseSeconds)
	if holder != e.options.Identity {
		transitions := value(lease.Spec.LeaseTransitions) + 1
		lease.Spec.AcquireTime, lease.Spec.LeaseTransitions = &now, &transitions
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &e.options.Identity, &seconds,
		&now
	isWritten, err := e.write(ctx, lease)
	if err != nil {
		return err
	}
	if isWritten {
		e.until.Store(asked.Add(leaseSeconds*time.Second - leaseMargin).UnixNano())
	} else {
		e.until.Store(0) // another one was quicker
	}
	return nil
}

// look notes when the Lease was seen to change.
func (e *election) look(spec *coordinationv1.LeaseSpec, at time.Time) {
	if e.seenAt.IsZero() || value(e.seen.HolderIdentity) != value(spec.HolderIdentity) ||
		!e.seen.RenewTime.Equal(spec.RenewTime) {
		e.seen, e.seenAt = *spec, at
	}
}

// release gives the Lease back, so that another gateway need not wait for its end.
func (e *election) release(ctx context.Context) {
	if !e.leads() {
		return
	}
	e.until.Store(0)
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	lease, err := e.read(ctx)
	if err != nil || lease == nil || value(lease.Spec.HolderIdentity) != e.options.Identity {
		return
	}
	nobody, second := "", int32(1)
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &nobody, &second
	if _, err := e.write(ctx, lease); err != nil {
		e.options.Log.Warn("the Lease cannot be given back: others wait for its end", "lease", e.options.Lease.String(),
			"cause", err)
	}
}

// read returns the Lease; nil if there is none.
func (e *election) read(ctx context.Context) (*coordinationv1.Lease, error) {
	answer, err := e.client.Send(ctx, state.Request{Method: http.MethodGet, Target: e.path + "/" + e.options.Lease.Name,
		Limit: maxAnswer})
	switch {
	case err != nil:
		return nil, err
	case answer.Code == http.StatusNotFound:
		return nil, nil
	case answer.Code != http.StatusOK:
		return nil, fmt.Errorf("the API server answered %d: %s", answer.Code, short(answer.Body))
	}
	lease := new(coordinationv1.Lease)
	return lease, json.Unmarshal(answer.Body, lease)
}

// write writes the Lease, and reports whether no other gateway has written it since it was read.
func (e *election) write(ctx context.Context, lease *coordinationv1.Lease) (bool, error) {
	lease.APIVersion, lease.Kind = "coordination.k8s.io/v1", "Lease"
	body, err := json.Marshal(lease)
	if err != nil {
		return false, err
	}
	r := state.Request{Method: http.MethodPost, Target: e.path, Body: body, Limit: maxAnswer}
	if lease.ResourceVersion != "" {
		r.Method, r.Target = http.MethodPut, e.path+"/"+e.options.Lease.Name
	}
	answer, err := e.client.Send(ctx, r)
	switch {
	case err != nil:
		return false, err
	case answer.Code == http.StatusConflict:
		return false, nil
	case answer.Code != http.StatusOK && answer.Code != http.StatusCreated:
		return false, fmt.Errorf("the API server answered %d: %s", answer.Code, short(answer.Body))
	}
	return true, nil
}

// value is what a pointer points to; the zero value if it is nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
