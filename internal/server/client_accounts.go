package server

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/h2"
	"github.com/admission-gateway/gateway/internal/memory"
)

// clientAccounts keep what is known of clients by their addresses, across their connections. An address shares its lock
// only with the others of its shard.
type clientAccounts struct {
	shards [accountShards]accountShard
	// ran is when a client had the last of its credit for resets, in seconds; 0 is never.
	ran atomic.Int64
}

type accountShard struct {
	mu  sync.Mutex
	all map[netip.Addr]*clientAccount
}

const (
	accountShards = 64
	// keptAccounts is how many accounts a shard keeps of clients without connections.
	keptAccounts = 256
	// clientResets and clientResetsPerSecond are what a client may reset on all of its connections.
	clientResets, clientResetsPerSecond = 1000, 250
)

// A clientAccount is the account of a client, by its address or, with IPv6, its network: a client with one address has
// a /64.
type clientAccount struct {
	memory.Holder
	shard   *accountShard
	network netip.Addr
	users   int // the lock of the shard guards it

	mu     sync.Mutex // guards what follows
	resets h2.FloodGuard
}

// open returns the account of an address, which close gives back.
func (all *clientAccounts) open(addr netip.Addr) *clientAccount {
	network := networkOf(addr)
	bytes := network.As16()
	shard := &all.shards[(bytes[15]^bytes[14]^bytes[13]^bytes[7]^bytes[6]^bytes[5])%accountShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	a := shard.all[network]
	if a == nil {
		if shard.all == nil {
			shard.all = map[netip.Addr]*clientAccount{}
		}
		a = &clientAccount{shard: shard, network: network, resets: h2.NewFloodGuard(clientResets, clientResetsPerSecond,
			time.Now())}
		shard.all[network] = a
	}
	a.users++
	return a
}

// networkOf is an address without what its holder chooses.
func networkOf(addr netip.Addr) netip.Addr {
	if addr = addr.Unmap().WithZone(""); addr.Is6() {
		return netip.PrefixFrom(addr, 64).Masked().Addr()
	}
	return addr
}

// close ends a use of the account. It is kept while something is to be known of the client, and there is room.
func (a *clientAccount) close() {
	s := a.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.users--; a.users > 0 {
		return
	}
	now := time.Now()
	if a.isBlank(now) {
		delete(s.all, a.network)
		return
	}
	if len(s.all) <= keptAccounts {
		return
	}
	for network, other := range s.all {
		if other.users == 0 && other.isBlank(now) {
			delete(s.all, network)
		}
	}
	for network, other := range s.all { // any of them
		if len(s.all) <= keptAccounts {
			return
		}
		if other.users == 0 {
			delete(s.all, network)
		}
	}
}

// isBlank reports whether nothing is to be known of the client.
func (a *clientAccount) isBlank(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.resets.IsFull(now)
}

// spendReset counts a stream that the client has had opened for nothing. It returns false if there were too many.
func (all *clientAccounts) spendReset(a *clientAccount) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.resets.Spend(1, time.Now) {
		return true
	}
	all.ran.Store(time.Now().Unix())
	return false
}

// earnResets gives credit for streams that were answered.
func (a *clientAccount) earnResets(n int) {
	if n > 0 {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.resets.Earn(n)
	}
}

// hasResets reports whether the client may reset a stream.
func (a *clientAccount) hasResets() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.resets.Has(1, time.Now)
}
