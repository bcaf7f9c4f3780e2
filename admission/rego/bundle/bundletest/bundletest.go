// Package bundletest makes bundles for tests, signed by OPA's own library.
package bundletest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	opa "github.com/open-policy-agent/opa/v1/bundle"
)

// Archive makes an archive of files.
func Archive(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: "/" + name, Mode: 0o600, Size: int64(len(files[name])), Typeflag: tar.TypeReg}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return Gzip(t, b.Bytes())
}

// Gzip compresses a text.
func Gzip(t testing.TB, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Keys makes a pair of RSA keys in PEM.
func Keys(t testing.TB) (private, public string) {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public = encode("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&k.PublicKey))
	return encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(k)), public
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// A Signature says how a bundle is signed. The zero one is by the secret "secret".
type Signature struct{ Key, Algorithm, KeyID, Scope string }

// Signed makes an archive of files, signed by OPA's library.
func Signed(t testing.TB, files map[string]string, s Signature) []byte {
	t.Helper()
	plain, err := opa.NewReader(bytes.NewReader(Archive(t, files))).Read()
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case s.Key == "":
		s.Key, s.Algorithm = "secret", "HS256"
	case s.Algorithm == "":
		s.Algorithm = "RS256"
	}
	claims, err := json.Marshal(map[string]any{"scope": s.Scope, "keyid": s.KeyID})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "claims.json")
	if err := os.WriteFile(file, claims, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := plain.GenerateSignature(opa.NewSigningConfig(s.Key, s.Algorithm, file), s.KeyID, false); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := opa.NewWriter(&b).DisableFormat(true).Write(plain); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Changed returns an archive with another file instead of one, or without it.
func Changed(t testing.TB, archive []byte, name, text string) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	r := tar.NewReader(z)
	for {
		header, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "/")] = string(content)
	}
	if files[name] = text; text == "" {
		delete(files, name)
	}
	return Archive(t, files)
}
