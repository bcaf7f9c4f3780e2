package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// allowedCPUs splits the CPUs that this program may use: the first is for the server under test, the others are for the
// load generator and the backend. With a single one, all share it.
func allowedCPUs() (server, load string, err error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "", "", err
	}
	_, list, _ := strings.Cut(string(status), "Cpus_allowed_list:")
	list, _, _ = strings.Cut(list, "\n")
	return splitCPUs(strings.TrimSpace(list))
}

// splitCPUs splits a list like "0-3,8" into "0" and "1-3,8".
func splitCPUs(list string) (first, rest string, err error) {
	first, rest, _ = strings.Cut(list, ",")
	if from, to, isRange := strings.Cut(first, "-"); isRange {
		low, err := strconv.Atoi(from)
		if err != nil {
			return "", "", fmt.Errorf("the list of CPUs is %q: %w", list, err)
		}
		first, rest = from, strings.TrimSuffix(fmt.Sprintf("%d-%s,%s", low+1, to, rest), ",")
	} else if _, err := strconv.Atoi(first); err != nil {
		return "", "", fmt.Errorf("the list of CPUs is %q: %w", list, err)
	}
	if rest == "" {
		rest = first
	}
	return first, rest, nil
}
