// Package ratelimit decides how often clients may ask, and how many requests are served at the same time.
//
// A [Rule] says which requests count, by which key, at which cost, and how many may come in a period. The
// [Rules] of a policy set make [Charges] of a request, which a [Limiter] decides about together: the request passes if
// every rule lets it, and one that is refused takes nothing from any of them (ERR-3).
//
// The algorithm is GCRA on integer nanoseconds: a bucket is one number, the theoretical arrival time, so that there
// are no timers and nothing to refill. Buckets live in the Limiter, which outlives the policy sets that rules come
// from. So do the places of requests that are served, and the queues in which others wait for them.
//
// Limits that all gateways count together are decided by a [SharedStore], which package shared
// keeps in Redis. What is counted here is decided first, and given back if the store refuses;
// without the store each rule says what happens.
package ratelimit
