//go:build unix

package descriptors

import "golang.org/x/sys/unix"

// limit returns how many descriptors the process may have open now; another process can change it.
func limit() int {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil || uint64(l.Cur) > unlimited {
		return unlimited
	}
	return int(l.Cur)
}
