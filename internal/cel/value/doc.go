// Package value shows documents to expressions: objects and lists on the tape as values of
// cel-go's, which decode only what is read, and the values that expressions make.
//
// An [Arena] makes them, from slabs that one request after another uses. It
// counts what they cost against an [Allowance]: units of cost, time and memory.
package value
