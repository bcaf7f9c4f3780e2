package bundles

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/file"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/outbound"
)

// A Fetcher asks for the newest version of a bundle.
type Fetcher interface {
	// Fetch returns it. have is the tag of the version that is there, empty for none; wait is how long
	// the answer may be held back until there is another version. held is asked for its memory.
	Fetch(ctx context.Context, have string, wait time.Duration, held *memory.Reservation) (*Answer, error)
}

// An Answer is the answer to a question of a Fetcher.
type Answer struct {
	// Archive is the bundle; nil if there is none newer.
	Archive []byte
	// Tag names the version.
	Tag string
	// Waits says that the next answer can be held back until there is another version.
	Waits bool
}

// A File gets a bundle from a local file.
type File struct {
	Name     string
	MaxBytes int64
}

// Fetch implements Fetcher.
func (f *File) Fetch(_ context.Context, have string, _ time.Duration, held *memory.Reservation) (*Answer, error) {
	archive, _, err := readFile(f.Name, f.MaxBytes, held)
	if err != nil {
		return nil, fmt.Errorf("the file '%s' %w", f.Name, err)
	}
	sum := sha256.Sum256(archive)
	tag := hex.EncodeToString(sum[:])
	if tag == have {
		return &Answer{Tag: tag}, nil
	}
	return &Answer{Archive: archive, Tag: tag}, nil
}

// errNoMemory is the error if there is no memory for an archive.
var errNoMemory = errors.New("takes more memory than is left of `limits.bodiesInFlightBytes`")

// readFile reads a file, for whose memory it asks.
func readFile(name string, most int64, held *memory.Reservation) ([]byte, fs.FileInfo, error) {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && !held.Grow(int(min(info.Size(), most))) {
		return nil, nil, errNoMemory
	}
	return file.Read(name, most)
}

// readWithin reads to the end, and asks for memory as bytes come.
func readWithin(from io.Reader, held *memory.Reservation) ([]byte, error) {
	var all []byte
	for {
		if len(all) == cap(all) {
			size := max(2*cap(all), 64<<10)
			if !held.Grow(size) {
				return nil, errNoMemory
			}
			larger := make([]byte, len(all), size)
			copy(larger, all)
			held.Shrink(cap(all))
			all = larger
		}
		n, err := from.Read(all[len(all):cap(all)])
		all = all[:len(all)+n]
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

// A Server gets a bundle from a server by OPA's protocol.
type Server struct {
	// URL is the address of the bundle.
	URL string
	// Network makes connections: it says what is particular to the server, and Server the rest.
	Network outbound.Options
	// Token returns the bearer token for the server; nil or empty: there is none.
	Token func() string
	// Timeout bounds one answer, beside the time for which it may be held back.
	Timeout time.Duration
	// Patience bounds the silence of a server that was asked to hold its answer back, when that time is over: until the
	// answer and within it. A connection may carry nothing any more although neither end closes it. 0 means 10 seconds.
	Patience time.Duration
	// MaxBytes bounds the archive.
	MaxBytes int64
	// Deltas says that deltas are asked for too.
	Deltas bool

	once   sync.Once
	client *http.Client
}

// Fetch implements Fetcher.
func (s *Server) Fetch(ctx context.Context, have string, wait time.Duration,
	held *memory.Reservation) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout+wait)
	defer cancel()
	patience := cmp.Or(s.Patience, defaultPatience)
	if wait == 0 {
		patience = 2 * s.Timeout // which is over first
	}
	silence := listen(ctx, wait+patience, patience, cancel)
	defer silence.timer.Stop()
	request, err := s.request(ctx, have, wait)
	if err != nil {
		return nil, err
	}
	s.once.Do(func() { s.client = client(s.Network, s.MaxBytes) })
	response, err := s.client.Do(request)
	if err != nil {
		return nil, silence.orFailed(withoutQuery(err))
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	silence.hear()
	waits := response.Header.Get("Content-Type") == "application/vnd.openpolicyagent.bundles"
	switch {
	case response.StatusCode == http.StatusNotModified && have != "":
		return &Answer{Tag: have, Waits: wait > 0 || waits}, nil
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the server answered with code %d", response.StatusCode)
	}
	archive, err := readWithin(heard{response.Body, silence}, held)
	var large *outbound.TooLargeError
	switch {
	case errors.Is(err, errNoMemory):
		return nil, fmt.Errorf("the answer %w", err)
	case errors.As(err, &large):
		return nil, large
	case err != nil:
		return nil, fmt.Errorf("the answer is not whole: %w", silence.orFailed(withoutQuery(err)))
	case len(archive) == 0:
		return nil, errors.New("the answer is empty")
	}
	return &Answer{Archive: archive, Tag: response.Header.Get("ETag"), Waits: waits}, nil
}

// defaultPatience is Server.Patience if it is not set.
const defaultPatience = 10 * time.Second

// errSilent is the failure of a server of which nothing is heard.
var errSilent = errors.New("the server is silent")

// silence ends a question if the server is silent for too long.
type silence struct {
	timer    *time.Timer
	patience time.Duration
	isOver   atomic.Bool
}

// listen begins to wait for a server, for the first time longer than for later ones.
func listen(ctx context.Context, first, patience time.Duration, end func()) *silence {
	s := &silence{patience: patience}
	s.timer = time.AfterFunc(first, func() {
		if ctx.Err() == nil {
			s.isOver.Store(true)
			end()
		}
	})
	return s
}

// hear notes that the server has sent something.
func (s *silence) hear() {
	if s.timer.Stop() {
		s.timer.Reset(s.patience)
	}
}

// orFailed returns the failure of a question: the silence of the server if that has ended it, else err.
func (s *silence) orFailed(err error) error {
	if s.isOver.Load() {
		return errSilent
	}
	return err
}

// heard is an answer whose bytes end the silence of a server.
type heard struct {
	from    io.Reader
	silence *silence
}

// Read implements io.Reader.
func (h heard) Read(p []byte) (int, error) {
	n, err := h.from.Read(p)
	if n > 0 {
		h.silence.hear()
	}
	return n, err
}

func (s *Server) request(ctx context.Context, have string, wait time.Duration) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return nil, withoutQuery(err)
	}
	prefer := "modes=snapshot"
	if s.Deltas {
		prefer += ",delta"
	}
	if wait > 0 {
		prefer += ";wait=" + strconv.Itoa(int(wait.Seconds()))
	}
	request.Header.Set("Prefer", prefer)
	if have != "" {
		request.Header.Set("If-None-Match", have)
	}
	if s.Token != nil {
		if token := s.Token(); token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
	}
	return request, nil
}

// client makes the client for a server, which may say that its bundles are elsewhere. Contexts have the deadlines: an
// answer may be held back.
func client(o outbound.Options, maxBytes int64) *http.Client {
	o.Timeout, o.MaxBytes, o.Redirects = outbound.ByContext, maxBytes, true
	return outbound.New(o)
}

// withoutQuery takes the URL out of an error: its query may hold a credential.
func withoutQuery(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
