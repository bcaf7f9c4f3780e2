package main

import (
	"bufio"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// settle gives back to the system what only the start needed: the heap of what was compiled, and the pages of the program's
// own file. Each package that is linked in runs a little of its code once, and the kernel maps much around it, two thirds of
// what is resident then; a page that is needed again is in the page cache.
func settle() {
	debug.FreeOSMemory()
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return // the pages stay until the system wants them
	}
	defer func() { _ = maps.Close() }()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		// start-end permissions offset device inode path
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[5] != program || !strings.HasPrefix(fields[1], "r-") {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, _ := strconv.ParseUint(from, 16, 64)
		if end, err := strconv.ParseUint(to, 16, 64); err == nil && start < end {
			// It can only fail as a whole, and then nothing was given back.
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(start), uintptr(end-start), unix.MADV_DONTNEED)
		}
	}
}
