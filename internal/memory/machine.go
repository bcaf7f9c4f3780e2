package memory

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

// Machine is how much memory the garbage collector may use, in bytes, and who says so: GOMEMLIMIT,
// or the control group that a container is. It is 0 if neither does. The lower one counts.
func Machine() (bytes int64, by string) {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		bytes, by = limit, "GOMEMLIMIT"
	}
	if limit := groupLimit("/proc/self/cgroup", "/sys/fs/cgroup"); limit > 0 {
		if most := Collectable(limit); bytes == 0 || most < bytes {
			bytes, by = most, "the container's memory limit"
		}
	}
	return bytes, by
}

// groupLimit is the lowest memory limit of the control groups that the process is in; 0 if there is
// none. Groups are the file that says which they are, root is the directory in which the kernel
// shows them.
func groupLimit(groups, root string) int64 {
	b, err := os.ReadFile(groups)
	if err != nil {
		return 0
	}
	var lowest int64
	for line := range strings.Lines(string(b)) {
		// ID:CONTROLLERS:PATH, without controllers in version 2.
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[1] == "":
			lowest = lower(lowest, limitAbove(root, parts[2], "memory.max"))
		case hasController(parts[1], "memory"):
			lowest = lower(lowest, limitAbove(filepath.Join(root, "memory"), parts[2], "memory.limit_in_bytes"))
		}
	}
	return lowest
}

func hasController(list, want string) bool {
	for name := range strings.SplitSeq(list, ",") {
		if name == want {
			return true
		}
	}
	return false
}

// limitAbove is the lowest limit of a group and of all that it is in. A container sees its own group as the root,
// whatever the path says.
func limitAbove(root, group, file string) (lowest int64) {
	for dir := filepath.Join("/", group); ; dir = filepath.Dir(dir) {
		lowest = lower(lowest, readLimit(filepath.Join(root, dir, file)))
		if dir == "/" {
			return lowest
		}
	}
}

// unlimited is beyond any memory there is: version 1 says so, rounded to pages, if there is no
// limit.
const unlimited = 1 << 60

func readLimit(file string) int64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || n <= 0 || n >= unlimited {
		return 0 // "max"
	}
	return n
}

// lower is the lower one of two limits, where 0 means no limit.
func lower(a, b int64) int64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// Keep makes the garbage collector keep the process within the container's memory limit, if there
// is one and GOMEMLIMIT names no lower one. It returns the limit that holds for the collector, 0
// for none.
func Keep() int64 {
	current := debug.SetMemoryLimit(-1)
	if limit := groupLimit("/proc/self/cgroup", "/sys/fs/cgroup"); limit > 0 {
		if most := Collectable(limit); most < current {
			current = most
			debug.SetMemoryLimit(current)
		}
	}
	if current == math.MaxInt64 {
		return 0
	}
	return current
}

// Collectable is how much of a container's memory the garbage collector may use. The rest, a tenth and at least 48 MiB,
// is for what the collector does not know of: the pages of the program itself, and the kernel's memory for its
// connections. Of a container that is smaller than that four times it is a quarter.
func Collectable(container int64) int64 {
	return container - max(container/10, min(48<<20, container/4))
}
