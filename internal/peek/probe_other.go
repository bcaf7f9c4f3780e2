//go:build !linux

package peek

// Polls is memory for ProbeAll.
type Polls = struct{}

// ProbeAll looks at many sockets. It does not find an end behind bytes that were not read yet, and takes no end for one
// that may be of one direction alone, if that is to be served.
func ProbeAll(all []Probe, _ Polls) Polls {
	for i := range all {
		one := &all[i]
		one.HasEnded, one.IsReadable = false, false
		_ = one.Socket.Control(func(fd uintptr) {
			closed, waits := Closed(fd)
			one.IsReadable = !closed && !waits
			one.HasEnded = closed && !one.ServesHalf
		})
	}
	return Polls{}
}
