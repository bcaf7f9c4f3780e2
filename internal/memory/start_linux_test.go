package memory

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// What the start alone needed is given back, and comes again when it is needed.
func TestForgetStart(t *testing.T) {
	resident := func() (kb int) {
		text, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, found := strings.Cut(string(text), "RssFile:")
		if _, err := fmt.Sscan(rest, &kb); !found || err != nil {
			t.Skip("the system does not say how much of the file is in memory")
		}
		return kb
	}
	before := resident()
	ForgetStart()
	after := resident()
	t.Logf("of the program %d KiB were resident, then %d", before, after)
	if after >= before {
		t.Errorf("of the program %d KiB were resident, then %d", before, after)
	}
	ForgetStart()
}
