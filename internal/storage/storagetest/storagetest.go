// Package storagetest plays requests against a storage and a backend on the loopback interface, as the proxy does, and
// compares all that the backend gets and the client gets with a file.
//
// A file is in the format of txtar. It has policy files, whose names end in .yaml, and cases. A case is a sequence of
// requests, with `---` between them:
//
//	PUT /notes/a                       the request line
//	If-Match: "1"                      its header lines
//	@change {"owner":"x"}              directives
//
//	{"text":"new"}                     the body
//	> GET /notes/a                     what the backend gets
//	< 200 ETag:"1" {"text":"old"}      what it answers
//	> PUT /notes/a If-Match:"1" {"text":"new","owner":"x"}
//	< 204
//	= 204                              what the client gets
//
// Lines that begin with `<` are given, and those with `>`, `~`, `=` and `!` are compared. `< close` ends the connection
// without an answer. The directives are
//
//	@change PATCH    a merge patch by which policies change the object
//	@deny            policies refuse the write
//	@old             policies read the stored object
//	@see             show what validating policies see, in lines that begin with `~`
//	@unread          the body is in a format that the gateway cannot read
//	@options WORDS   options of the storage, which the test knows
//
// UPDATE=1 writes what came of the cases into the file.
package storagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// A Setup is what a storage of a case is made of.
type Setup struct {
	Set                      *policies.Set
	Info                     *resource.Info
	Resource                 *resource.Resource
	Schemas                  storage.Schemas
	Backend                  *storage.Backend
	Limits                   *storage.Limits
	Policies, ObjectPolicies *admission.Scoped
	// Options are the words of the directive @options.
	Options map[string]bool
}

// Limits are those of all requests.
var Limits = storage.Limits{
	Sent:   document.Limits{Bytes: 4 << 10, Depth: 32, Nodes: 1 << 10},
	Stored: document.Limits{Bytes: 4 << 10, Depth: 32, Nodes: 2 << 10},
	Body:   4 << 10,
}

// Run plays the cases of each file of a folder. open is called for each case, and returns what makes the storage of
// each of its requests.
func Run(t *testing.T, folder string, open func(t *testing.T) func(*Setup) storage.Storage) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no cases: %v", folder, err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, f := range archive.Files {
			if strings.HasSuffix(f.Name, ".yaml") {
				texts = append(texts, string(f.Data))
			}
		}
		set := policiestest.Load(t, texts...)
		for i, f := range archive.Files {
			if strings.HasSuffix(f.Name, ".yaml") {
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+f.Name, func(t *testing.T) {
				got := play(t, set, string(f.Data), open(t))
				if os.Getenv("UPDATE") != "" {
					archive.Files[i].Data = []byte(got)
				} else if got != string(f.Data) {
					t.Errorf("got\n%s\nwant\n%s", got, f.Data)
				}
			})
		}
		if os.Getenv("UPDATE") != "" {
			if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A request is one request of a case.
type request struct {
	given                                string // as the file has it, without what is compared
	head                                 []byte
	body                                 []byte
	change                               []byte // a merge patch of the object
	isDenied, readsOld, isSeen, isUnread bool
	options                              map[string]bool
	answers                              []string
}

// parse reads one request.
func parse(t *testing.T, text string) *request {
	t.Helper()
	r := &request{options: map[string]bool{}}
	isBody := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "< "):
			r.answers = append(r.answers, strings.TrimSpace(line[2:]))
			continue
		case len(line) > 1 && line[1] == ' ' && strings.IndexByte(">=!~", line[0]) >= 0:
			continue
		}
		r.given += line
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case isBody:
			r.body = append(r.body, line...)
		case line == "\n":
			isBody = true
		case word == "@change":
			r.change = []byte(rest)
		case word == "@deny":
			r.isDenied = true
		case word == "@old":
			r.readsOld = true
		case word == "@see":
			r.isSeen = true
		case word == "@unread":
			r.isUnread = true
		case word == "@options":
			for _, one := range strings.Fields(rest) {
				r.options[one] = true
			}
		case r.head == nil:
			r.head = []byte(word + " " + rest + " HTTP/1.1\r\nHost: api\r\n")
		default:
			r.head = append(append(r.head, strings.TrimSuffix(line, "\n")...), "\r\n"...)
		}
	}
	r.body = bytes.TrimSuffix(r.body, []byte("\n"))
	r.head = append(r.head, "\r\n"...)
	return r
}

// play plays a case, and returns it with what came of it.
func play(t *testing.T, set *policies.Set, text string, open func(*Setup) storage.Storage) string {
	t.Helper()
	backend := &backend{}
	server := http.Server{Handler: backend, ReadHeaderTimeout: time.Minute}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }() // until Close
	defer func() { _ = server.Close() }()
	client, err := upstream.New(upstream.Config{Endpoints: []string{"http://" + listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var got strings.Builder
	for i, one := range strings.Split(text, "---\n") {
		if i > 0 {
			got.WriteString("---\n")
		}
		r := parse(t, one)
		backend.begin(r.answers)
		got.WriteString(r.given)
		result := send(t, set, r, client, open)
		got.WriteString(backend.end())
		got.WriteString(result)
	}
	return volatile.Replace(got.String())
}

// send sends one request, and returns what the client gets.
func send(
	t *testing.T, set *policies.Set, p *request, client *upstream.Client, open func(*Setup) storage.Storage,
) string {
	t.Helper()
	var head message.Head
	if err := head.Parse(p.head, &message.Options{}); err != nil {
		t.Fatal(err)
	}
	limits := Limits
	limits.Refused = func(memory.Refusal) error { return errors.New("no memory") }
	r := &storage.Request{Exchanges: storage.Exchanges{
		Started: time.Now(), Head: &head, Body: p.body, Memory: new(memory.Reservation), Limits: &limits,
	}}
	info, described, err := set.Registry().Resolve(string(head.Method), head.Target)
	if err != nil {
		return answered(r, err)
	}
	r.SetSubject(&info, described)
	r.Patch = patchTypes[string(head.Value(message.FieldContentType))]
	if info.Verb != resource.VerbPatch {
		r.Patch = storage.NoPatch
	}
	chain := admission.NewChain(nil, nil)
	if p.readsOld {
		chain = admission.NewChain(nil, []admission.Validator{oldPolicy{}})
	}
	object := info
	object.Subresource = ""
	s := open(&Setup{
		Set: set, Info: &info, Resource: described, Limits: &limits, Options: p.options,
		Backend:  &storage.Backend{Name: "api", Client: client, Failed: func(*upstream.Error) {}},
		Policies: chain.For(&info), ObjectPolicies: chain.For(&object),
		Schemas: storage.Schemas{
			Create: set.SchemaFor(described, resource.VerbCreate),
			Update: set.SchemaFor(described, resource.VerbUpdate),
			Patch:  set.SchemaFor(described, resource.VerbPatch), Read: set.SchemaFor(described, resource.VerbGet),
			BlamesPatches: set.BlamesPatches(described),
		},
	})
	g := gateway{storage: s, request: r, given: p, seen: new(strings.Builder)}
	if info.Verb.Reads() {
		err = g.read()
	} else {
		err = g.write()
	}
	return g.seen.String() + answered(r, err)
}

// patchTypes are the languages of patches by their media types.
var patchTypes = map[string]storage.PatchType{
	storage.JSONPatchType: storage.JSONPatch, storage.MergePatchType: storage.MergePatch,
	storage.JSON:                    storage.MergePatch,
	storage.StrategicMergePatchType: storage.StrategicMergePatch, storage.ApplyPatchType: storage.ApplyPatch,
}

// oldPolicy is a policy about everything that reads the stored object.
type oldPolicy struct{}

func (oldPolicy) Name() string { return "old" }

func (oldPolicy) Rules() []admission.Rule {
	return []admission.Rule{{Group: "*", Resource: "*", Operations: admission.Create | admission.Update |
		admission.Delete}}
}

func (oldPolicy) NeedsOld() bool { return true }

func (oldPolicy) FailurePolicy() admission.FailurePolicy { return admission.Fail }

func (oldPolicy) Validate(context.Context, *admission.Attributes, *admission.Report) error {
	return nil
}

// A gateway serves one request as the proxy does.
type gateway struct {
	storage storage.Storage
	request *storage.Request
	given   *request
	seen    *strings.Builder // what validating policies have seen
}

// read serves a read. An answer that is edited while it streams is gathered.
func (g *gateway) read() error {
	r := g.request
	if err := g.storage.Read(r); err != nil || r.Editor == nil {
		return err
	}
	var body []byte
	for {
		piece := make([]byte, 64)
		n, err := r.Response.Stream().Read(piece)
		for rest := piece[:n]; len(rest) > 0; {
			out, used, err := r.Editor.Append(body, rest, len(body)+1<<20)
			if err != nil {
				return r.Editor.Failed(err)
			}
			body, rest = out, rest[used:]
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	body, err := r.Editor.Close(body)
	if err != nil {
		return r.Editor.Failed(err)
	}
	r.Response.AnswerEditedBytes(body)
	return nil
}

// write serves a write: it is admitted again if another writer came between, a few times.
func (g *gateway) write() error {
	s, r := g.storage, g.request
	isOpaque := s.IsOpaque(&r.Info)
	if r.Info.IsObject() {
		if err := s.Lock(r, isOpaque); err != nil {
			return err
		}
	}
	defer r.Unlock()
	for n := 1; ; n++ {
		w := new(storage.Write)
		w.Begin(r)
		err := g.attempt(w, isOpaque)
		again := (err == storage.ErrConflict && !w.IsPinned || err == storage.ErrNameTaken) && n < 3
		if err == storage.ErrConflict && !again {
			err = w.Conflict()
		}
		if err != nil && !again && err != storage.ErrAnswered {
			err = s.Refusal(w, err)
		}
		w.Release()
		if !again {
			return err
		}
		r.Memory.Reopen()
		r.Warnings = nil
	}
}

// attempt makes one attempt at a write.
func (g *gateway) attempt(w *storage.Write, isOpaque bool) (err error) {
	s, body := g.storage, g.request.Body
	if err := s.CheckOptions(w); err != nil {
		return err
	}
	if g.given.isUnread {
		return g.show(w)
	}
	if len(body) > 0 && !isOpaque {
		d, err := w.Exchanges.Parse(body, Limits.Sent)
		if err != nil {
			return err
		}
		if w.Object, w.Source = d, body; w.Info.Verb == resource.VerbPatch {
			w.Patch, w.Object, w.Source = d, nil, nil
		}
	}
	switch verb := w.Info.Verb; {
	case verb == resource.VerbDelete:
		return g.delete(w)
	case verb == resource.VerbDeleteCollection:
		return g.deleteCollection(w)
	case isOpaque:
		w.Source = body
		return s.Pass(w)
	case s.Scaler() != nil:
		return g.scale(w)
	case verb == resource.VerbPatch:
		isPrepared, err := s.Patched(w)
		if err == storage.ErrUnshown {
			w.Source = body
			return s.Pass(w)
		}
		if err == nil && !isPrepared {
			err = g.prepare(w)
		}
		if err != nil {
			return err
		}
		if err := g.admit(w); err != nil {
			return err
		}
		return s.Patch(w)
	}
	if err := g.complete(w); err != nil {
		return err
	}
	if w.Info.Verb == resource.VerbCreate {
		err = s.PrepareForCreate(w)
	} else {
		if s.NeedsExisting(w) {
			if err := s.Get(w); err != nil {
				return err
			}
		}
		err = s.PrepareForUpdate(w)
	}
	if err != nil {
		return err
	}
	if err := g.admit(w); err != nil {
		return err
	}
	if w.Info.Verb == resource.VerbCreate {
		return s.Create(w)
	}
	return s.Update(w)
}

// complete completes an object, and takes out what its schema does not know.
func (g *gateway) complete(w *storage.Write) error {
	if err := g.storage.Complete(w); err != nil {
		return err
	}
	if of := g.storage.Schema(w); of != nil {
		var unknown schema.Unknown
		if err := of.Prune(w.Object, &unknown); err != nil {
			return w.Unreadable(err.Error())
		}
		w.IsKnown = !unknown.Any()
	}
	return g.storage.CheckKeys(w)
}

// prepare prepares the result of a patch.
func (g *gateway) prepare(w *storage.Write) error {
	if err := g.complete(w); err != nil {
		return err
	}
	return g.storage.PrepareForUpdate(w)
}

// admit changes, validates and previews an object.
func (g *gateway) admit(w *storage.Write) error {
	s := g.storage
	if g.given.change != nil {
		s.Reveal(w, false)
		patch, err := w.Exchanges.Parse(g.given.change, Limits.Sent)
		if err != nil {
			return err
		}
		w.Object.MergePatch(patch.Root())
		patch.Release()
		if err := s.KeepStatus(w); err != nil {
			return err
		}
	}
	s.SetMetadata(w)
	if of := s.Schema(w); of != nil {
		f := cel.NewFrame(context.Background())
		defer f.Release()
		result := s.Validate(of, f, w)
		if result.Err != nil {
			return result.Err
		}
		failures := append(w.Faults(result.Errors), s.ValidateMetadata(w)...)
		if len(failures) > 0 {
			return w.Invalid(w.Info.Name, failures, 0)
		}
	}
	s.Warn(w)
	if err := s.Preview(w); err != nil {
		return err
	}
	return g.judge(w)
}

// judge lets policies judge a write.
func (g *gateway) judge(w *storage.Write) error {
	g.storage.Reveal(w, true)
	if g.given.isSeen {
		fmt.Fprintf(g.seen, "~ %s", w.Info.Verb)
		object := w.Admitted()
		if w.Info.Verb.Operation() == admission.Delete {
			object = nil
		}
		for _, one := range [...]struct {
			name string
			d    *document.Document
		}{{"object", object}, {"old", w.Existing.Object}} {
			if one.d != nil {
				fmt.Fprintf(g.seen, " %s:%s", one.name, one.d.AppendTo(nil))
			}
		}
		options, err := g.storage.OperationOptions(w, w.Info.Verb.Operation())
		if err != nil {
			g.seen.WriteByte('\n')
			return err
		}
		if options.Valid() {
			fmt.Fprintf(g.seen, " options:%s", options.AppendRaw(nil))
		}
		g.seen.WriteByte('\n')
	}
	if w.Failed != nil {
		return w.Failed
	}
	if g.given.isDenied {
		return status.BadRequest("denied")
	}
	return nil
}

// show admits an object that only the backend can read.
func (g *gateway) show(w *storage.Write) error {
	w.Source = g.request.Body
	shower := g.storage.Shower()
	if shower == nil {
		return errors.New("the backend shows nothing")
	}
	isShown, err := shower.Show(w)
	if err != nil {
		return err
	}
	if !isShown {
		return errors.New("the backend does not show it")
	}
	if err := g.judge(w); err != nil {
		return err
	}
	if w.Info.Verb == resource.VerbCreate {
		return g.storage.Create(w)
	}
	return g.storage.Update(w)
}

func (g *gateway) delete(w *storage.Write) error {
	if err := g.storage.PrepareForDelete(w); err != nil {
		return err
	}
	if err := g.judge(w); err != nil {
		return err
	}
	return g.storage.Delete(w)
}

func (g *gateway) deleteCollection(w *storage.Write) error {
	objects, err := g.storage.DeleteCollection(w)
	switch {
	case err != nil:
		return err
	case objects == nil:
		return g.delete(w)
	}
	defer objects.Release()
	listed := objects.Listed()
	if listed != nil {
		for one, err := range listed {
			if err != nil {
				return err
			}
			if err := g.judge(one); err != nil {
				return err
			}
		}
	}
	for objects.Next() {
		for isJudged := listed != nil; ; isJudged = false {
			if !isJudged {
				one, err := objects.Read()
				if err != nil {
					return err
				}
				if one == nil {
					break
				}
				if err := g.judge(one); err != nil {
					return err
				}
			}
			if err := objects.Delete(); err == nil {
				break
			} else if err != storage.ErrConflict {
				return err
			}
		}
	}
	return objects.Answer()
}

func (g *gateway) scale(w *storage.Write) error {
	scaler := g.storage.Scaler()
	if err := g.storage.Get(w); err != nil {
		return err
	}
	asked := new(storage.Write)
	asked.Begin(g.request)
	defer asked.Release()
	if err := scaler.ReadScale(w, asked); err != nil {
		return err
	}
	if err := scaler.ApplyScale(w, asked); err != nil {
		return err
	}
	of := gateway{scaler.Object(), g.request, g.given, g.seen}
	if err := of.admit(w); err != nil {
		return err
	}
	return of.storage.Update(w)
}

// answered writes what the client gets.
func answered(r *storage.Request, err error) string {
	var b strings.Builder
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "! %s\n", warning)
	}
	if err != nil && err != storage.ErrAnswered {
		var failed *status.Error
		if errors.As(err, &failed) {
			fmt.Fprintf(&b, "= %d %s: %s\n", failed.ErrStatus.Code, failed.ErrStatus.Reason, failed.ErrStatus.Message)
		} else {
			fmt.Fprintf(&b, "= error: %v\n", err)
		}
		return b.String()
	}
	a := &r.Response
	fmt.Fprintf(&b, "= %d", a.Status())
	if etag := a.ETag(); len(etag) > 0 {
		fmt.Fprintf(&b, " ETag:%s", etag)
	}
	body := a.Body()
	if a.IsStream() {
		body, _ = io.ReadAll(a.Stream())
	}
	if len(body) > 0 {
		fmt.Fprintf(&b, " %s", bytes.ReplaceAll(body, []byte("\n"), []byte(" ")))
	}
	return b.String() + "\n"
}

// A backend answers requests in turn, and notes them.
type backend struct {
	mu      sync.Mutex
	answers []string
	log     strings.Builder
}

func (b *backend) begin(answers []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers = answers
	b.log.Reset()
}

// end returns what came, with the answers. Answers that were not used are left out, so that the file differs.
func (b *backend) end() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.String()
}

// shownFields are the header fields of requests that a file shows.
var shownFields = []string{"Authorization", "Content-Type", "If-Match", "If-None-Match", "If-Unmodified-Since",
	"If-Modified-Since"}

// ServeHTTP implements http.Handler.
func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	b.mu.Lock()
	fmt.Fprintf(&b.log, "> %s %s", r.Method, r.RequestURI)
	for _, name := range shownFields {
		if value := strings.Join(r.Header.Values(name), ", "); value != "" && (name != "Content-Type" ||
			value != storage.JSON) {
			fmt.Fprintf(&b.log, " %s:%s", name, value)
		}
	}
	if len(body) > 0 {
		fmt.Fprintf(&b.log, " %s", body)
	}
	b.log.WriteByte('\n')
	answer := "599"
	if len(b.answers) > 0 {
		answer, b.answers = b.answers[0], b.answers[1:]
	}
	fmt.Fprintf(&b.log, "< %s\n", answer)
	b.mu.Unlock()
	if answer == "close" {
		panic(http.ErrAbortHandler)
	}
	word, rest, _ := strings.Cut(answer, " ")
	code, _ := strconv.Atoi(word)
	for {
		name, value, isField := strings.Cut(rest, ":")
		if !isField || name == "" || strings.ContainsAny(name, ` {["`) {
			break
		}
		value, rest, _ = strings.Cut(value, " ")
		w.Header().Set(name, strings.ReplaceAll(value, "+", " "))
	}
	if rest != "" && w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", storage.JSON)
	}
	w.WriteHeader(code)
	_, _ = io.WriteString(w, rest) // to the client, whatever it does with it
}

// volatile replaces what is another one in each run.
var volatile = replacer{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`admission-gateway-probe-[A-Z0-9]+`), "PROBE"},
	{regexp.MustCompile(`generated-[a-z0-9]{5}\b`), "generated-NAME"},
	{regexp.MustCompile(`20(2[1-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "NOW"},
}

type replacer []struct {
	pattern *regexp.Regexp
	with    string
}

// Replace replaces all matches.
func (r replacer) Replace(text string) string {
	for _, one := range r {
		text = one.pattern.ReplaceAllString(text, one.with)
	}
	return text
}
