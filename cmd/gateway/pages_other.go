//go:build !linux

package main

// forgetStart does nothing where the system has no such call.
func forgetStart() {}
