// Package programs has the servers and clients that the tests of ordinary APIs run, and installs them: packages of npm
// in the user's cache, and packages of Debian on the machine.
package programs

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The packages of npm with their versions, and the servers and clients that are our own.
//
//go:embed npm/package.json npm/package-lock.json npm/.npmrc npm/*.mjs
var npm embed.FS

// The validator of the tests of published documents, and packages that have such documents.
//
//go:embed corpus/package.json corpus/package-lock.json corpus/.npmrc corpus/*.mjs corpus/*.py
var corpus embed.FS

// The frameworks whose servers the tests of preconditions run before.
//
//go:embed frameworks/package.json frameworks/package-lock.json frameworks/.npmrc frameworks/*.mjs frameworks/*.py
var frameworks embed.FS

// A bundle is a folder of packages of npm, and programs of our own that use them.
type bundle struct {
	files  embed.FS
	folder string
}

var (
	servers   = bundle{npm, "npm"}
	documents = bundle{corpus, "corpus"}
	notes     = bundle{frameworks, "frameworks"}
)

// manifests decide what is installed.
var manifests = []string{"package.json", "package-lock.json", ".npmrc"}

// Debian has the programs that come as packages of Debian, with the package of each.
var Debian = map[string]string{
	"prometheus":              "prometheus",
	"promtool":                "prometheus",
	"prometheus-alertmanager": "prometheus-alertmanager",
	"amtool":                  "prometheus-alertmanager",
	"etcd":                    "etcd-server",
	"chromium":                "chromium",
	"redis-server":            "redis-server",
	"h2load":                  "nghttp2-client",
	"nghttp":                  "nghttp2-client",
	"curl":                    "curl",
	"openssl":                 "openssl",
	"haproxy":                 "haproxy",
	"nginx":                   "nginx",
	"certutil":                "libnss3-tools",
}

// StreamModule is the file by which Debian's nginx passes bytes of TCP.
const StreamModule = "/usr/lib/nginx/modules/ngx_stream_module.so"

// FastAPI is the folder of Debian's FastAPI, for Debian's Python.
const FastAPI = "/usr/lib/python3/dist-packages/fastapi"

// modules returns the folder of npm's packages. Its name has a hash of the manifests, and it appears whole, so that it
// is its own stamp.
func (b bundle) modules() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	for _, name := range manifests {
		text, err := b.files.ReadFile(b.folder + "/" + name)
		if err != nil {
			return "", err
		}
		hash.Write(text)
	}
	return filepath.Join(cache, "admission-gateway-apis", fmt.Sprintf("%s-%x", b.folder, hash.Sum(nil)[:8])), nil
}

// Node makes the folder a place to run Node.js in: with our own servers and clients, and the packages of npm. It fails
// if Node.js or the packages are missing.
func Node(dir string) error { return servers.use(dir) }

// Corpus does the same with the validator of the tests of published documents, and with the packages that have some.
func Corpus(dir string) error { return documents.use(dir) }

// Frameworks does the same with servers of notes by frameworks of Node.js, and one of Python.
func Frameworks(dir string) error { return notes.use(dir) }

// NeedFastAPI fails if FastAPI, or the server that runs it, is missing.
func NeedFastAPI() error {
	for _, dir := range [...]string{FastAPI, uvicorn} {
		if _, err := os.Stat(dir); err != nil {
			return fmt.Errorf("FastAPI, or its server, is missing (Debian's packages python3-fastapi and python3-uvicorn): %w", err)
		}
	}
	return nil
}

// Python is the interpreter that has the packages of Debian.
const Python = "/usr/bin/python3"

// uvicorn is the path of Debian's server for FastAPI.
const uvicorn = "/usr/lib/python3/dist-packages/uvicorn"

func (b bundle) use(dir string) error {
	if _, err := exec.LookPath("node"); err != nil {
		return fmt.Errorf("node is missing: %w", err)
	}
	from, err := b.modules()
	if err != nil {
		return err
	}
	if _, err := os.Stat(from); err != nil {
		return fmt.Errorf("the packages of npm are missing: %w", err)
	}
	files, err := b.files.ReadDir(b.folder)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := b.unpack(dir, file.Name()); err != nil {
			return err
		}
	}
	return os.Symlink(filepath.Join(from, "node_modules"), filepath.Join(dir, "node_modules"))
}

func (b bundle) unpack(dir, name string) error {
	text, err := b.files.ReadFile(b.folder + "/" + name)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), text, 0o600)
}

// Path returns the path of a program of Debian; it fails if the program is missing.
func Path(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is missing (Debian's package %s)", name, Debian[name])
	}
	return path, nil
}

// Install installs whatever is missing. The packages of Debian need root.
func Install() error {
	for _, b := range []bundle{servers, documents, notes} {
		if err := b.install(); err != nil {
			return err
		}
	}
	return installPackages()
}

func (b bundle) install() error {
	dir, err := b.modules()
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "installing-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	for _, name := range manifests {
		if err := b.unpack(work, name); err != nil {
			return err
		}
	}
	if err := command(work, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"); err != nil {
		return err
	}
	if err := os.Rename(work, dir); err != nil && !os.IsExist(err) {
		return err
	}
	return nil
}

func installPackages() error {
	missing := map[string]bool{}
	for name, from := range Debian {
		if _, err := exec.LookPath(name); err != nil {
			missing[from] = true
		}
	}
	if _, err := os.Stat(FastAPI); err != nil {
		missing["python3-fastapi"] = true
	}
	if _, err := os.Stat(uvicorn); err != nil {
		missing["python3-uvicorn"] = true
	}
	if _, err := os.Stat(StreamModule); err != nil {
		missing["libnginx-mod-stream"] = true
	}
	if len(missing) == 0 {
		return nil
	}
	args := []string{"install", "-q", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"}
	for name := range missing {
		args = append(args, name)
	}
	if err := command("", "apt-get", "update", "-q"); err != nil {
		return err
	}
	return command("", "apt-get", args...)
}

// command runs a program, and says on stderr what it does.
func command(dir, name string, args ...string) error {
	fmt.Fprintf(os.Stderr, "+ %s %s\n", name, strings.Join(args, " "))
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	// In runlevel 1 Debian's packages install their services without starting them.
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
