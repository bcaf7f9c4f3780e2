// Package decisions logs what policies decide, as Open Policy Agent logs its decisions: an event for
// each evaluation, in the JSON of OPA's decision logs.
//
// The request's goroutine writes the event as one line, and never blocks. In the background a
// [Filter] masks it, and sinks take it: a [Service] that speaks OPA's protocol, or a file. All that
// waits is bounded in bytes. What finds no room is lost and counted.
package decisions
