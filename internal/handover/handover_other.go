//go:build !linux

package handover

import (
	"errors"
	"io"
	"net"
)

// takeOver takes nothing over: no kernel but Linux's is known to share an address as that takes.
func (c *Claims) takeOver(string) (*net.TCPListener, io.Closer) { return nil, nil }

func share(*net.TCPListener) error { return errors.ErrUnsupported }
