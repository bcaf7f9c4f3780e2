package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/policies/policiestest"
)

// TestLengthOfHEAD: a HEAD of a described object has the ETag and the Content-Length of a GET, whether the gateway
// makes the ETag, completes the object or leaves both to the backend.
func TestLengthOfHEAD(t *testing.T) {
	const defaulted = "readDefaults: Fill\n  schema: {openAPIV3Schema: {type: object, properties: {id: {type: string}, a: {type: string}, d: {type: integer, default: 5}}}}\n  "
	const plain = "Accept-Encoding: identity" // which the client asks for in no other way
	tags := map[string]func([]byte) string{"no ETag": noTag, "a weak ETag": expressTag, "a strong ETag": fastifyTag}
	for kind, tag := range tags {
		for _, mode := range []string{"Auto", "Gateway", "Backend"} {
			for _, hasDefault := range []bool{false, true} {
				for _, size := range []int{10, 200_000, 3_200_000} {
					if hasDefault && size > 3_000_000 {
						continue // an object that is too large to be completed is refused
					}
					t.Run(fmt.Sprintf("%s, %s, defaults %v, %d bytes", kind, mode, hasDefault, size),
						func(t *testing.T) {
							t.Parallel()
							object := []byte(`{"id":"n1","a":"` + strings.Repeat("x", size) + `"}`)
							backend := httptest.NewServer(
								http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
									w.Header().Set("Content-Type", "application/json")
									w.Header().Set("Content-Length", fmt.Sprint(len(object)))
									if tag := tag(object); tag != "" {
										w.Header().Set("ETag", tag)
									}
									if r.Method != http.MethodHead {
										_, _ = w.Write(object)
									}
								}))
							defer backend.Close()
							lines := "preconditions: " + mode
							if hasDefault {
								lines = defaulted + lines
							}
							g := gatewayFor(t, policiestest.Write(t, notedAs(lines)),
								strings.TrimPrefix(backend.URL, "http://"), nil)
							address := startGateway(t, g)
							for _, name := range []string{"n1", "n1", "n1?fields=a"} {
								head, body := noteAt(t, address, "HEAD", name, "", plain)
								get, text := noteAt(t, address, "GET", name, "", plain)
								if head.StatusCode != 200 || get.StatusCode != 200 || body != "" ||
									head.Header.Get("ETag") != get.Header.Get("ETag") {
									t.Errorf("%s: a HEAD is answered %d %v, a GET %d %v", name, head.StatusCode,
										head.Header, get.StatusCode, get.Header)
								}
								want := int64(len(text))
								if hasDefault && size > 100_000 && !strings.Contains(name, "?") &&
									!strings.HasPrefix(get.Header.Get("ETag"), `"gw-`) {
									want = -1 // there is none: the object is completed while it is sent
								}
								if head.ContentLength != want || get.ContentLength != want {
									t.Errorf("%s: the length of a HEAD is %d, of a GET %d, want %d", name,
										head.ContentLength, get.ContentLength, want)
								}
							}
						})
				}
			}
		}
	}
}

// TestLengthOfHEADInChunks: a backend that does not say how long its answers are gets a HEAD answered without a length,
// too, unless the gateway has read the object.
func TestLengthOfHEADInChunks(t *testing.T) {
	const object = `{"id":"n1"}`
	for _, mode := range []string{"Auto", "Backend"} {
		backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.Method != http.MethodHead {
				_, _ = io.WriteString(w, object)
			}
			w.(http.Flusher).Flush()
		}))
		g := gatewayFor(t, policiestest.Write(t, notedAs("preconditions: "+mode)),
			strings.TrimPrefix(backend.URL, "http://"), nil)
		head, body := noteAt(t, startGateway(t, g), "HEAD", "n1", "")
		want := map[string]int64{"Auto": int64(len(object)), "Backend": -1}[mode]
		if head.StatusCode != 200 || body != "" || head.ContentLength != want {
			t.Errorf("%s: answered %d with the length %d, want %d", mode, head.StatusCode, head.ContentLength, want)
		}
		backend.Close()
	}
}
