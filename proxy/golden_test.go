package proxy

import (
	"bytes"
	"flag"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil/scenario"
)

var isUpdate = flag.Bool("update", false, "write what the gateway does into the golden files")

// TestGolden plays the scenarios of testdata/way: policies, the client's raw requests, what reached the backend byte
// for byte, and the raw answers. The backend's own answers are in the file too.
func TestGolden(t *testing.T) {
	for _, s := range scenario.ReadAll(t, "testdata/way") {
		t.Run(s.Name(), func(t *testing.T) { playGolden(t, s) })
	}
}

func playGolden(t *testing.T, s *scenario.Scenario) {
	upstream, answers := tellGolden(t, s, func(t testing.TB, address string) net.Conn {
		c, _ := dial(t, address)
		return c
	})
	s.Compare(t, "upstream", upstream, *isUpdate)
	s.Compare(t, "response", answers, *isUpdate)
}

// tellGolden plays a scenario, and returns what reached the backend and the client, as scenarios show it.
func tellGolden(t *testing.T, s *scenario.Scenario,
	dial func(t testing.TB, address string) net.Conn) (upstream, answers []byte) {
	dir := t.TempDir()
	s.WritePolicies(t, dir)
	backend := scenario.NewBackend(t, listenBackend(t), s.Sections("backend."))
	backend.Discovery = s.Section("discovery")
	words := strings.Fields(string(s.Section("config")))
	if i := slices.Index(words, "prove"); i >= 0 {
		backend.Version, words = "", slices.Delete(words, i, i+1) // the scenario itself has the answer to GET /version
	}
	gateway := gatewayFor(t, dir, backend.Address, words)
	waitForStates(t, gateway)
	address := startGateway(t, gateway)
	answers = s.Play(t, func(t testing.TB) net.Conn { return dial(t, address) })
	upstream = scenario.Paper(bytes.ReplaceAll(backend.Received(), []byte(backend.Address), []byte("backend")))
	if overTLS(t) {
		upstream = bytes.ReplaceAll(upstream, []byte("X-Forwarded-Proto: https\n"), []byte("X-Forwarded-Proto: http\n"))
	}
	return upstream, scenario.Paper(answers)
}

// exchangeRaw sends one request on a connection of its own and returns the raw answer.
func exchangeRaw(t testing.TB, address string, request []byte) []byte {
	t.Helper()
	c, _ := dial(t, address)
	return scenario.Exchange(t, c, request)
}
