package shared

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"
)

// MaxDepth is the longest time that a bucket may take to empty: 100 days. Numbers in Redis' scripts are exact up to
// 104.
const MaxDepth = 100 * 24 * time.Hour

// Limit is the size of a bucket.
type Limit struct {
	// Interval is the worth of one token, Depth the worth of all: burst times Interval, at most MaxDepth.
	Interval, Depth time.Duration
	// Lease is how many tokens are taken at a time, at most the burst; 0 takes what is needed.
	Lease int64
}

// Key names a bucket. It has nothing of what clients send but a digest.
type Key [16]byte

// KeyOf is the bucket of a value under a limit, whose number is the same on all gateways.
func KeyOf(limit uint64, value []byte) Key {
	buffer := make([]byte, 0, 256)
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(buffer, limit), value...))
	return Key(sum[:16])
}

// name is the key's name in Redis.
func (k *Key) name(prefix string) string {
	b := make([]byte, 0, 96)
	return string(hex.AppendEncode(append(b, prefix...), k[:]))
}

// Demand is a request's demand on one limit, with the answer.
type Demand struct {
	Key   Key
	Limit Limit
	// Cost is how many tokens the request takes, from 1 to the burst.
	Cost int64
	// Advisory means that the request passes without the tokens, too.
	Advisory bool

	// Wait is after how long the bucket would have the tokens; 0 means that it has them.
	Wait time.Duration
	// Ahead is how long the bucket takes to be empty, the request's tokens included if they were taken.
	Ahead time.Duration

	decidedBy decidedBy
	leasing   bool // a lease, for the gateway
	sent      bool
	taken     taken
}

// WasSent reports whether Redis was asked about the demand.
func (d *Demand) WasSent() bool { return d.sent }

// decidedBy is who decides on a demand.
type decidedBy int8

const (
	asked  decidedBy = iota // Redis is
	leased                  // the gateway, with a token of its lease
	known                   // the gateway, which knows that there is no token yet
)

// taken are tokens in hand, and when they were taken by the clock of Redis.
type taken struct{ tokens, seconds, nanos int64 }

// want is how many tokens are asked for.
func (d *Demand) want() int64 {
	if d.leasing {
		return max(d.Cost, d.Limit.Lease)
	}
	return d.Cost
}

// line returns d as an argument of take.lua.
func (d *Demand) line() string {
	b := make([]byte, 0, 64)
	for _, n := range [...]int64{int64(d.Limit.Depth), int64(d.Limit.Interval), d.Cost, d.want()} {
		b = append(strconv.AppendInt(b, n, 10), ' ')
	}
	if d.Advisory {
		return string(append(b, '0'))
	}
	return string(append(b, '1'))
}

// waitAhead is how long a bucket that is ahead so far has no room for the tokens of d.
func (d *Demand) waitAhead(ahead time.Duration) time.Duration {
	return max(0, ahead+time.Duration(d.Cost)*d.Limit.Interval-d.Limit.Depth)
}

// giveBack makes c return tokens to their bucket.
func (c *call) giveBack(name string, t taken, interval time.Duration) {
	b := make([]byte, 0, 64)
	b = append(strconv.AppendInt(b, t.seconds, 10), ' ')
	b = append(strconv.AppendInt(b, t.nanos, 10), ' ')
	b = strconv.AppendInt(b, t.tokens*int64(interval), 10)
	c.script, c.keys, c.lines = giveBack, []string{name}, []string{string(b)}
}
