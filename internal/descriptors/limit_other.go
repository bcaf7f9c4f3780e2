//go:build !unix

package descriptors

func limit() int { return unlimited }
