// Package shared counts requests in Redis, so that all gateways before one API keep one limit together.
//
// A limit is a bucket by GCRA, as in package ratelimit: its state is one time, when it is empty again. One script reads
// the buckets of all limits of a request, decides by the clock of Redis, and charges all of them or none: gateways need
// no clock that is right, and a request takes one round trip. Times are seconds and nanoseconds apart, and everything
// the script calculates with is a difference of at most [MaxDepth], because numbers of Lua are exact below 2^53 alone.
//
// In a Redis Cluster the buckets of a request are on several servers, which no script can reach
// together. There each is decided on its own, at the same time, and if one refuses, what the others
// took is given back. Until it is, for about a round trip, other requests may find those buckets
// fuller than they are; never emptier.
//
// A refund is the amount that was taken less the time that has passed: so much is certainly still
// in the bucket, whatever was taken after it. To give back therefore never lets more through than
// if nothing had been taken.
//
// # Leases
//
// A limit with a Lease takes tokens in batches and admits without asking while it has some. A batch that is not used
// within [leaseFor] is given back. In any span of time d no more pass than
//
//	burst + d/interval + gateways × lease
//
// since a gateway never has more than one batch in hand. A refusal is remembered, too: until the
// time that Redis gave, a gateway refuses by itself, but for no longer than [rememberFor].
//
// # When Redis fails
//
// [Store.Take] answers within the Timeout of the [Options], whatever Redis does. A circuit breaker for each server
// stops asking one that does not answer, and tries it again with one request every [openFor]. What happens to the
// request is the caller's to say. An answer that comes too late still counts in Redis.
package shared
