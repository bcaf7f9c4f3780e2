package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/internal/identity/identitytest"
)

// issueToken starts an issuer of JWTs, and has it issue one of a usual size, about 1 KB, for a user.
func (m *Machine) issueToken() (err error) {
	if m.issuer, err = identitytest.Start(); err != nil {
		return err
	}
	m.token = m.issuer.Token(map[string]any{
		"sub": "bench", "teams": []string{"team-a", "team-b"}, "email": "bench@example.com",
		"name": strings.Repeat("n", 400),
	})
	return nil
}

// identity configures users who are known by the issuer's tokens, and lets others pass.
func (m *Machine) identity() map[string]any {
	return map[string]any{
		"anonymous": "Allow",
		"authenticators": []any{map[string]any{"jwt": map[string]any{
			"issuer": map[string]any{"url": m.issuer.URL, "certificateAuthority": m.issuer.CA,
				"audiences": []string{"gateway"}},
			"claimMappings": map[string]any{"username": map[string]any{"expression": "claims.sub"},
				"groups": map[string]any{"expression": "claims.teams"}},
		}}},
	}
}

// identityConfig writes a configuration that knows users.
func (m *Machine) identityConfig() (file string, err error) {
	config, err := json.Marshal(map[string]any{
		"apiVersion": "admission-gateway.io/v1alpha1", "kind": "GatewayConfiguration", "identity": m.identity(),
	})
	if err != nil {
		return "", err
	}
	file = filepath.Join(m.Dir, "identity.json")
	return file, os.WriteFile(file, config, 0o600)
}

// checkIdentity makes sure that a user is known by the token, within the time in which the issuer's keys are read
// first, that another token is refused, and that requests of the user are counted.
func checkIdentity(address, token string) error {
	get := func(token string) (code int, limits string, err error) {
		r, err := http.NewRequest(http.MethodGet, "http://"+address+collection+"/checkout", nil)
		if err != nil {
			return 0, "", err
		}
		r.Header.Set("Authorization", "Bearer "+token)
		client := http.Client{Timeout: 10 * time.Second}
		defer client.CloseIdleConnections()
		answer, err := client.Do(r)
		if err != nil {
			return 0, "", err
		}
		return answer.StatusCode, answer.Header.Get("RateLimit"), answer.Body.Close()
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		code, limits, err := get(token)
		if err == nil && code == http.StatusOK && strings.Contains(limits, "per-user") {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the user is not known by the token, or not limited: %d, RateLimit: %q, %w", code, limits,
				err)
		}
	}
	code, _, err := get(token[:len(token)-8] + "AAAAAAAA")
	if err == nil && code != http.StatusUnauthorized {
		err = fmt.Errorf("a token with another signature is not refused: %d", code)
	}
	return err
}
