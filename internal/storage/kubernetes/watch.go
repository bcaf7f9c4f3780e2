package kubernetes

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// watchTarget returns the target of a watch that lasts for a period at most, or as long as the client asks if that is
// less. A server may end a watch at any time, and not all of them end at once.
func watchTarget(e *storage.Exchanges, i *resource.Info, period time.Duration) []byte {
	most := max(int64((period - rand.N(period/6+1)).Seconds()), 1)
	return e.Target(func(dst []byte) []byte {
		dst = append(append(dst, i.Path...), '?')
		for rest := i.Query; rest != ""; {
			var pair string
			pair, rest, _ = strings.Cut(rest, "&")
			if key, value, _ := strings.Cut(pair, "="); key == "timeoutSeconds" {
				if asked, err := strconv.ParseInt(value, 10, 64); err == nil && 0 < asked && asked < most {
					most = asked
				}
				continue
			}
			dst = append(append(dst, pair...), '&')
		}
		return strconv.AppendInt(append(dst, "timeoutSeconds="...), most, 10)
	})
}
