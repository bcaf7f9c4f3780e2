//go:build race

package proxy

// raced tells that the race detector is in use, which makes stacks and values larger.
const raced = true
