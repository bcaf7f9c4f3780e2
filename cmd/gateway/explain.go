package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admission-gateway/gateway/internal/explanation"
	"github.com/admission-gateway/gateway/internal/policytest"
	"github.com/admission-gateway/gateway/internal/recorded"
	"github.com/admission-gateway/gateway/policies/source"
	"github.com/admission-gateway/gateway/policies/testcase"
	"github.com/admission-gateway/gateway/proxy"
)

// explainFlags are the flags of the command.
type explainFlags struct {
	request requestFlags
	scene   sceneFlags
	format  string
	color   string
}

// requestFlags say which request is explained.
type requestFlags struct {
	file, line, data string
	headers          []string
	user             string
	groups           []string
	har, audit, id   string
	entry            int
}

// sceneFlags say before which policies and what backend.
type sceneFlags struct {
	config, dialect, old string
	params, state        []string
}

func newExplain() *cobra.Command {
	var flags explainFlags
	cmd := &cobra.Command{
		Use:   "explain [POLICIES...]",
		Short: "Say what becomes of a request, and why",
		Long: `Play a request through the gateway, in this process in front of a backend in memory, and print the whole story: the
resource that it names; each step and what it changes; each policy with its expressions, their values and the values of
their parts, and the line of a policy that keeps it from the request; the answer, and what the backend would get. It is
the code that serves requests, so that what it says would happen.

The request is an object (-f), which is created, or which replaces the one of --old; a request line with a body
(--request, -d, -H); an entry of an HTTP archive (--har); or an event of an audit log (--audit). POLICIES are policy files
and folders; without any they are the ones of the configuration that --config names, or of the current folder. With --config
the request is led by the routes of that configuration, as a client's is.

The exit code is 0 if the request would go to the backend, 1 if it is refused, 2 if something given is wrong.`,
		Example: `  gateway explain -f pod.yaml policies/
  gateway explain --request 'POST /shop/users' -d @user.json --user alice --groups team-a policies/
  gateway explain --audit audit.log --id 3f2a… -o html policies/ > why.html
  gateway explain --har session.har --entry 12 policies/`,
		RunE: func(cmd *cobra.Command, paths []string) error { return flags.run(cmd, paths) },
	}
	f := cmd.Flags()
	f.StringVarP(&flags.request.file, "filename", "f", "",
		"explain the write of the object in `FILE`, '-' for the standard input")
	f.StringVar(&flags.request.line, "request", "", "explain the request `LINE`, a method and a path; a URL in place of the path says the host too")
	f.StringVarP(&flags.request.data, "data", "d", "", "the body of the request is `TEXT`, or the file after '@'")
	f.StringArrayVarP(&flags.request.headers, "header", "H", nil,
		"the request has the header `NAME: VALUE`; may be given again")
	f.StringVar(&flags.request.user, "user", "", "the user `NAME` sends the request")
	f.StringSliceVar(&flags.request.groups, "groups", nil, "the user is in `GROUPS`, beside system:authenticated")
	f.StringVar(&flags.request.har, "har", "", "explain a request in the HTTP archive `FILE`")
	f.IntVar(&flags.request.entry, "entry", 1, "explain the entry `N` of the archive, from 1")
	f.StringVar(&flags.request.audit, "audit", "",
		"explain a request in the audit log `FILE`, by an event with its requestObject")
	f.StringVar(&flags.request.id, "id", "",
		"explain the event with the auditID `ID`, instead of the first with an object")
	f.StringVar(&flags.scene.old, "old", "", "the object in `FILE` is stored")
	f.StringArrayVar(&flags.scene.params, "params", nil,
		"the objects in `FILE` are there for policies to refer to; may be given again")
	f.StringArrayVar(&flags.scene.state, "state", nil, "the collection `NAME=FILE` of a StateSource has the objects in the file; may be given again")
	f.StringVar(&flags.scene.config, "config", "", "lead the request by the gateway's configuration `FILE`: its routes, upstreams, limits and policies")
	f.StringVar(&flags.scene.dialect, "dialect", "", "without --config, the backend is of the `DIALECT` Kubernetes or Plain; by default the one that suits the policies")
	f.StringVarP(&flags.format, "output", "o", "text", "write the story as `FORMAT`: text, json or html")
	f.StringVar(&flags.color, "color", "auto", "write text in colours: auto, always or never; auto heeds NO_COLOR and TERM=dumb")
	choices(cmd, "dialect", dialectNames()...)
	choices(cmd, "output", "text", "json", "html")
	choices(cmd, "color", "auto", "always", "never")
	return cmd
}

func (f *explainFlags) run(cmd *cobra.Command, paths []string) error {
	if !slices.Contains([]string{"text", "json", "html"}, f.format) {
		return usageError("--output: must be 'text', 'json' or 'html', not '%s'", f.format)
	}
	if !slices.Contains([]string{"auto", "always", "never"}, f.color) {
		return usageError("--color: must be 'auto', 'always' or 'never', not '%s'", f.color)
	}
	q, err := f.scene.question(paths)
	var unknown []string
	if err == nil {
		unknown, err = f.request.ask(cmd, q)
	}
	if err != nil {
		return &failure{exitUsage, err}
	}
	explained, err := policytest.Explain(cmd.Context(), q)
	if err != nil {
		var mistakes policytest.Errors
		if errors.As(err, &mistakes) {
			err = fmt.Errorf("the policies have errors:\n%w", err)
		}
		return &failure{exitUsage, err}
	}
	explained.Unknown = append(explained.Unknown, unknown...)
	switch out := cmd.OutOrStdout(); f.format {
	case "json":
		explanation.WriteJSON(out, explained)
	case "html":
		err = explanation.WriteHTML(out, explained)
	default:
		explanation.WriteText(out, explained, f.color == "always" || f.color == "auto" && wantsColor(out))
	}
	if err == nil && explained.Answer.Decision == explanation.Refused {
		return &failure{exitFailure, nil}
	}
	return err
}

// question begins a question about a request, before the ones about the policies.
func (s *sceneFlags) question(paths []string) (*policytest.ExplainRequest, error) {
	q := &policytest.ExplainRequest{Policies: paths, Dialect: s.dialect}
	if s.config != "" {
		c, err := loadForCheck(s.config)
		if err != nil {
			return nil, err
		}
		if len(paths) == 0 {
			q.Policies = c.Policies.Names()
		}
		q.Read = func(paths []string) *source.Source { return readFor(paths, c) }
		if q.Service, err = serviceOf(c); err != nil {
			return nil, err
		}
		if s.dialect != "" {
			return nil, errors.New("--dialect: must not be given with --config, which says the dialect of each upstream")
		}
	}
	if len(q.Policies) == 0 {
		q.Policies = []string{"."}
	}
	if !slices.Contains([]string{"", "Kubernetes", "Plain"}, q.Dialect) {
		return nil, fmt.Errorf("--dialect: must be 'Kubernetes' or 'Plain', not '%s'", q.Dialect)
	}
	if s.old != "" {
		existing, err := policytest.ReadObject(s.old)
		if err != nil {
			return nil, err
		}
		q.Case.Existing = existing
	}
	for _, file := range s.params {
		objects, err := policytest.ReadObjects(file)
		if err != nil {
			return nil, err
		}
		q.Case.Params = append(q.Case.Params, objects...)
	}
	q.Case.State = map[string][]json.RawMessage{}
	for _, one := range s.state {
		name, file, found := strings.Cut(one, "=")
		if !found {
			return nil, fmt.Errorf("--state: must be NAME=FILE, not '%s'", one)
		}
		objects, err := policytest.ReadObjects(file)
		if err != nil {
			return nil, err
		}
		q.Case.State[name] = objects
	}
	return q, nil
}

// ask adds the request. It returns what cannot be known of it.
func (r *requestFlags) ask(cmd *cobra.Command, q *policytest.ExplainRequest) (unknown []string, err error) {
	given := 0
	for _, one := range []string{r.file, r.line, r.har, r.audit} {
		if one != "" {
			given++
		}
	}
	if given != 1 && !(given == 0 && q.Case.Existing != nil) {
		return nil, errors.New("name one request: by --filename, --request, --har or --audit; with --old alone it is a deletion")
	}
	for _, h := range r.headers {
		name, value, found := strings.Cut(h, ":")
		if !found {
			return nil, fmt.Errorf("--header: must be 'NAME: VALUE', not '%s'", h)
		}
		q.Headers = append(q.Headers, [2]string{strings.TrimSpace(name), strings.TrimSpace(value)})
	}
	user := &testcase.User{Name: cmp.Or(r.user, "user"), Groups: r.groups}
	if q.Service.KnowsUsers() || r.user != "" || len(r.groups) > 0 {
		q.Case.User = user
	}
	switch {
	case r.file != "":
		if r.file == "-" {
			q.Case.Object, err = policytest.ReadObjectFrom(cmd.InOrStdin(), "the standard input")
		} else {
			q.Case.Object, err = policytest.ReadObject(r.file)
		}
		return nil, err
	case r.line != "":
		return nil, r.askLine(q)
	case r.har != "" || r.audit != "":
		return r.askRecorded(q, user)
	}
	return nil, nil
}

// askLine adds the request of a request line.
func (r *requestFlags) askLine(q *policytest.ExplainRequest) error {
	method, path, found := strings.Cut(strings.TrimSpace(r.line), " ")
	path = strings.TrimSpace(path)
	if _, _, isURL := proxy.CutURL(path); !found || !isURL && !strings.HasPrefix(path, "/") {
		return fmt.Errorf("--request: must be a method and a path or a URL, not '%s'", r.line)
	}
	q.Case.Request = &testcase.Request{Method: method, Path: path}
	q.Headers = slices.DeleteFunc(q.Headers, func(h [2]string) bool {
		switch {
		case strings.EqualFold(h[0], "content-type"):
			q.Case.Request.ContentType = h[1]
		case strings.EqualFold(h[0], "host"):
			q.Case.Request.Headers = map[string]string{"Host": h[1]}
		default:
			return false
		}
		return true
	})
	body := []byte(r.data)
	if file, is := strings.CutPrefix(r.data, "@"); is {
		var err error
		if body, err = os.ReadFile(file); err != nil {
			return err
		}
	}
	if len(body) > 0 {
		q.Case.Request.Body = body
	}
	return nil
}

// askRecorded adds a request that was recorded.
func (r *requestFlags) askRecorded(q *policytest.ExplainRequest, user *testcase.User) (unknown []string, err error) {
	file := cmp.Or(r.har, r.audit)
	var found *recorded.Request
	if r.har != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found, err = recorded.HAR(data, r.entry)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	} else {
		log, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		found, err = recorded.Audit(log, r.id)
		if err = errors.Join(err, log.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	q.Case.Request = &testcase.Request{Method: found.Method, Path: found.Target, ContentType: found.ContentType,
		Body: found.Body}
	if _, host, hasHost := strings.Cut(found.Origin, "://"); hasHost {
		q.Case.Request.Headers = map[string]string{"Host": host}
	}
	q.Headers = append(found.Headers, q.Headers...)
	if by := found.User; r.user == "" && by != nil && q.Service.KnowsUsers() {
		*user = testcase.User{Name: by.Name, Groups: append(by.Groups, r.groups...)}
		if by.UID != "" {
			q.Headers = append(q.Headers, [2]string{"X-Remote-Uid", by.UID})
		}
		for key, values := range by.Extra {
			for _, v := range values {
				q.Headers = append(q.Headers, [2]string{"X-Remote-Extra-" + url.PathEscape(key), v})
			}
		}
	}
	if q.Case.Existing == nil {
		q.Case.Existing = found.Old
	}
	if found.Unknown != "" {
		unknown = append(unknown, found.Unknown)
	}
	if q.Case.Existing == nil && found.Changes() && found.Code != http.StatusCreated {
		unknown = append(unknown, "the object that is stored, which the record does not have: --old names it")
	}
	return unknown, nil
}
