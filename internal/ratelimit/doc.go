// Package ratelimit decides how often clients may ask.
//
// A [Rule] says which requests count, what they are counted by, and how many may come in a period. All rules that
// concern a request apply together: it passes if every one of them lets it, and a request that is refused takes
// nothing from any of them (ERR-3).
//
// The algorithm is GCRA on integer nanoseconds: a bucket is one number, the theoretical arrival time, so that there
// are no timers and nothing to refill. Buckets live in a [Limiter], which outlives the policy sets that rules come from.
package ratelimit
