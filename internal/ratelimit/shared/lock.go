package shared

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/admission-gateway/gateway/internal/presence"
)

// A lock is a lease in Redis that makes one gateway of several the only one that writes an object.
// Redis forgets it after lockTTL, so that a gateway that ends does not keep it; a gateway that
// still needs it renews it long before. Only the owner of its token can renew or release it.
//
// A lock does not replace a backend's own versions: a gateway that stands still between its last look at
// the lock and the bytes that it sends may send them after another gateway has got the lock.

const (
	// lockTTL is how long Redis keeps a lock that is not renewed.
	lockTTL = 15 * time.Second
	// lockMargin is the end of that time, in which the lock no longer counts: for clocks that run
	// differently, and for a request on its way to the backend.
	lockMargin = 5 * time.Second
	// lockPause is about how long a gateway waits before it asks again for a lock that another one has.
	lockPause = 10 * time.Millisecond
)

var (
	// ErrLocked says that another gateway had the lock for all of the time that was to be waited.
	ErrLocked = errors.New("another gateway is writing the object")

	renewScript   = redis.NewScript(`if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0`)
	releaseScript = redis.NewScript(`if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`)
)

// Lock is a lock that was given.
type Lock struct {
	store       *Store
	name, token string
	until       atomic.Int64 // on the store's clock; after it the lock does not count

	mu       sync.Mutex
	renewal  *time.Timer
	released bool
}

// Lock takes the lock of a name, and waits no longer than so long for another gateway that has it, and only while the
// client waits. The error is ErrLocked or presence.ErrLeft, or Redis does not answer.
func (s *Store) Lock(name string, wait time.Duration, client *presence.Client) (*Lock, error) {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	l := &Lock{store: s, name: s.options.Prefix + "lock:" + digestOf(name), token: hex.EncodeToString(random[:])}
	by := time.Now().Add(wait)
	for {
		switch given, err := l.take(); {
		case err != nil:
			return nil, err
		case given:
			l.mu.Lock()
			defer l.mu.Unlock()
			l.renewal = time.AfterFunc(lockTTL/3, l.renew)
			return l, nil
		}
		pause := lockPause/2 + mathrand.N(lockPause)
		if time.Until(by) < pause {
			return nil, ErrLocked
		}
		if err := client.Sleep(pause); err != nil {
			return nil, err
		}
	}
}

// digestOf names an object by so many characters, however long its path is.
func digestOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// take asks once for the lock.
func (l *Lock) take() (bool, error) {
	ctx, cancel := l.store.lockContext()
	defer cancel()
	asked := l.store.clock()
	err := l.store.locker().SetArgs(ctx, l.name, l.token, redis.SetArgs{Mode: "NX", TTL: lockTTL}).Err()
	switch {
	case errors.Is(err, redis.Nil):
		return false, nil
	case errors.Is(err, redis.ErrPoolTimeout): // Redis may well answer other gateways
		return false, fmt.Errorf("%w, or too many requests ask Redis for locks", ErrLocked)
	case err != nil:
		return false, fmt.Errorf("the lock in Redis cannot be taken: %w", err)
	}
	l.extend(asked)
	return true, nil
}

// extend makes the lock count from when Redis was asked on.
func (l *Lock) extend(asked int64) { l.until.Store(asked + int64(lockTTL-lockMargin)) }

// IsValid reports whether no other gateway can have the lock.
func (l *Lock) IsValid() bool { return l.store.clock() < l.until.Load() }

// renew makes the lock last, as long as it is the gateway's own.
func (l *Lock) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released || !l.IsValid() {
		return
	}
	ctx, cancel := l.store.lockContext()
	defer cancel()
	asked := l.store.clock()
	switch kept, err := renewScript.Run(ctx, l.store.locker(), []string{l.name}, l.token,
		lockTTL.Milliseconds()).Int(); {
	case err != nil: // it counts until its time is over
		l.renewal.Reset(lockTTL / 30)
	case kept == 0:
		l.until.Store(0)
	default:
		l.extend(asked)
		l.renewal.Reset(lockTTL / 3)
	}
}

// Release gives the lock back. If Redis does not answer, it ends by itself.
func (l *Lock) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released = true
	l.renewal.Stop()
	l.until.Store(0)
	ctx, cancel := l.store.lockContext()
	defer cancel()
	_ = releaseScript.Run(ctx, l.store.locker(), []string{l.name}, l.token).Err()
}

// lockContext bounds what one question about a lock takes.
func (s *Store) lockContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), s.options.ConnectTimeout+stall)
}

// locker returns the client that is asked about locks.
func (s *Store) locker() redis.Cmdable {
	if s.many != nil {
		return s.many.client
	}
	return s.single.client
}
