package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/outbound"
	"github.com/admission-gateway/gateway/internal/quote"
)

const (
	statusTimeout = 10 * time.Second
	// maxStatus bounds the answer that is read.
	maxStatus = 64 << 20
)

// statusFlags say which gateway is asked, and what for.
type statusFlags struct {
	admin, tokenFile, caFile, request, output string
	isStrict                                  bool
}

func newStatus() *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what a running gateway does",
		Long: `Ask the admin listener of a running gateway, and print its answer: its version, its policies and their verdicts,
its limits, its listeners, the servers of its backends, what its policies read, certificates, and what was lost.

With --request it prints which policies and limits match a request, by its method and path, and why the others do not. Nothing is sent to the backend.

The exit code is 1 if the gateway is not ready or cannot be asked, 2 if a flag is wrong. With --strict it is 1 too while
the newest policy files or the newest configuration are not in force.`,
		Example: `  gateway status
  gateway status --admin https://gateway-admin.team-a.svc:8081 --ca-file ca.crt --token-file token
  gateway status --request 'POST /apis/example.com/v1/namespaces/team-a/widgets'
  gateway status -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.admin, "admin", config.Default().Admin.Listen, "ask the admin listener at `ADDR`, a host and a port, or a URL of the scheme https")
	flags.StringVar(&f.tokenFile, "token-file", "", "show the token in `FILE`")
	flags.StringVar(&f.caFile, "ca-file", "", "trust the authorities in `FILE` in place of the system's")
	flags.StringVar(&f.request, "request", "", "print what becomes of the request `'METHOD PATH'`; a URL in place of the path says the host too")
	flags.BoolVar(&f.isStrict, "strict", false, "fail while the newest files are not in force")
	flags.StringVarP(&f.output, "output", "o", "text", "print as `FORMAT`: text or json")
	choices(cmd, "output", "text", "json")
	return cmd
}

func (f *statusFlags) run(cmd *cobra.Command) error {
	if f.output != "text" && f.output != "json" {
		return usageError("--output: must be 'text' or 'json', not '%s'", f.output)
	}
	client, err := f.client()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	path := "/status"
	if f.request != "" {
		path = "/policies?request=" + url.QueryEscape(f.request)
	}
	body, err := f.get(cmd.Context(), client, path)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if f.request != "" {
		var forecast admin.Forecast
		if err := json.Unmarshal(body, &forecast); err != nil {
			return fmt.Errorf("the answer of the admin listener cannot be read: %w", err)
		}
		if f.output == "json" {
			_, err := out.Write(body)
			return err
		}
		return printForecast(out, &forecast)
	}
	var s admin.Status
	if err := json.Unmarshal(body, &s); err != nil {
		return fmt.Errorf("the answer of the admin listener cannot be read: %w", err)
	}
	if f.output == "json" {
		_, err = out.Write(body)
	} else {
		err = printStatus(inColor(out, f.output, statusColors()), &s)
	}
	if err == nil && (!s.IsReady() || f.isStrict && !s.IsNewest()) {
		return &failure{code: exitFailure}
	}
	return err
}

func (f *statusFlags) client() (*http.Client, error) {
	o := outbound.Options{Timeout: statusTimeout, MaxBytes: maxStatus, Direct: true} // no proxy may see the token
	if f.caFile != "" {
		text, err := os.ReadFile(f.caFile)
		if err != nil {
			return nil, usageError("--ca-file: %w", err)
		}
		pool, err := credentials.ParsePool(text)
		if err != nil {
			return nil, usageError("--ca-file: %w", err)
		}
		trusts := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		o.TLS = func() *tls.Config { return trusts }
	}
	return outbound.New(o), nil
}

func (f *statusFlags) get(ctx context.Context, client *http.Client, path string) ([]byte, error) {
	base := f.admin
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+path, nil)
	if err != nil {
		return nil, usageError("--admin: must be a host and a port, or a URL: %w", err)
	}
	if f.tokenFile != "" {
		token, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return nil, usageError("--token-file: %w", err)
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("the admin listener does not answer; --admin names that of a running gateway: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	var large *outbound.TooLargeError
	switch {
	case errors.As(err, &large):
		return nil, fmt.Errorf("the answer of the admin listener is larger than %d bytes", large.MaxBytes)
	case err != nil:
		return nil, fmt.Errorf("the answer of the admin listener cannot be read: %w", err)
	case answer.StatusCode != http.StatusOK:
		var said struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(body, &said) // what is no Status has no message
		return nil, fmt.Errorf("the admin listener answers %s: %s", answer.Status,
			cmp.Or(said.Message, "without a message"))
	}
	return body, nil
}

// printStatus prints the status for people.
func printStatus(to io.Writer, s *admin.Status) error {
	var b bytes.Buffer
	ready := "ready"
	if !s.IsReady() {
		ready = "NOT READY"
	}
	fmt.Fprintf(&b, "gateway %s is %s, up %s\n", s.Version, ready, time.Duration(s.UptimeSeconds)*time.Second)
	for _, one := range s.Ready {
		if one.Failure != "" {
			fmt.Fprintf(&b, "  %s: %s\n", one.Name, one.Failure)
		}
		if one.Warning != "" {
			fmt.Fprintf(&b, "  %s, while requests are served: %s\n", one.Name, one.Warning)
		}
	}
	c := &s.Configuration
	fmt.Fprintf(&b, "\nconfiguration: hash %.12s, in force since %s\n", c.Hash, c.LoadTime.Format(time.RFC3339))
	if len(c.NeedsRestart) > 0 {
		fmt.Fprintf(&b, "A RESTART IS NEEDED for %s\n", strings.Join(c.NeedsRestart, ", "))
	}
	if failed := c.LastFailure; failed != nil {
		fmt.Fprintf(&b, "THE NEWEST CONFIGURATION IS NOT IN FORCE since %s\n", failed.Time.Format(time.RFC3339))
		for _, line := range failed.Findings {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	p := &s.Policies
	fmt.Fprintf(&b, "policies: generation %d, hash %.12s, in force since %s\n", p.Generation, p.Hash,
		p.LoadTime.Format(time.RFC3339))
	if r := p.LastReload; r != nil {
		fmt.Fprintf(&b, "last read at %s: %s, %s\n", r.Time.Format(time.RFC3339), r.Outcome,
			quote.Count(len(r.Findings), "finding"))
		for _, line := range r.Findings {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	if failed := p.LastFailure; failed != nil {
		fmt.Fprintf(&b, "THE NEWEST FILES ARE NOT IN FORCE since %s\n", failed.Time.UTC().Format(time.RFC3339))
		if p.LastReload == nil || p.LastReload.Outcome != "Refused" {
			for _, line := range failed.Findings {
				fmt.Fprintf(&b, "  %s\n", line)
			}
		}
	}
	for _, line := range s.Failing() {
		fmt.Fprintln(&b, line)
	}
	var w bytes.Buffer // rows whose cells are set apart by tabs
	if len(p.Folders) > 0 {
		fmt.Fprint(&w, "\nFOLDER\tOWNER\tCONCERNS\tHASH\tSTATE\n")
		for i := range p.Folders {
			f := &p.Folders[i]
			fmt.Fprintf(&w, "%s\t%s\t%s\t%.12s\t%s\n", f.Path, f.Owner, f.Concerns, cmp.Or(f.Hash, "-"), f.State())
		}
		fmt.Fprintln(&w)
	}
	for _, file := range p.Files {
		for _, o := range file.Objects {
			fmt.Fprintf(&w, "  %s\t%s\t%s\n", file.Path, o.Kind, strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"))
		}
	}
	if len(s.Verdicts)+len(s.Limits) > 0 {
		fmt.Fprint(&w, "\nPOLICY\tVERDICT\tREQUESTS\n")
		for _, all := range [][]admin.Tally{s.Verdicts, s.Limits} {
			for _, t := range all {
				fmt.Fprintf(&w, "%s\t%s\t%d\n", t.Policy, t.Verdict, t.Count)
			}
		}
	}
	if len(s.Rollouts) > 0 {
		fmt.Fprint(&w, "\nROLLOUT\tENFORCED\tOTHERWISE\n")
		for i := range s.Rollouts {
			r := &s.Rollouts[i]
			fmt.Fprintf(&w, "%s\t%s\t%s\n", r.Policy, cmp.Or(r.Enforced, "everywhere"), r.Sentence())
		}
	}
	writeTried(&w, s.Rollouts)
	writeIdle(&w, s.Idle)
	if len(s.Exceptions) > 0 {
		fmt.Fprint(&w, "\nEXCEPTION\tPOLICIES\tENDS\tUSED\tREASON\n")
		for i := range s.Exceptions {
			e := &s.Exceptions[i]
			fmt.Fprintf(&w, "%s\t%s\t%s\t%d\t%s\n", e.Name, strings.Join(e.Policies, ", "), e.End(), e.Used,
				joinedBy("; ", e.Reason, originOf(e.Folder, e.Owner)))
		}
	}
	if len(s.RateLimits) > 0 {
		fmt.Fprint(&w, "\nLIMIT\tREQUESTS\tBY\tOVER TIME\tAT A TIME\tSCOPE\tMODE\n")
		for i := range s.RateLimits {
			l := &s.RateLimits[i]
			fmt.Fprintf(&w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Name, l.Matches(), l.KeyText(), cmp.Or(l.Rate(), "-"),
				cmp.Or(l.InFlight(), "-"), l.Scope(), l.Mode)
		}
	}
	fmt.Fprint(&w, "\nLISTENER\tADDRESSES\tPROTOCOL\tHOSTS\tROUTES\tSTATE\n")
	for i := range s.Listeners {
		l := &s.Listeners[i]
		fmt.Fprintf(&w, "%s\t%s\t%s\t%s\t%d\t%s\n", l.Name, strings.Join(l.Addresses, ", "), l.ProtocolText(),
			l.HostsText(), l.Routes, l.State())
	}
	fmt.Fprint(&w, "\nUPSTREAM\tCIRCUIT\tENDPOINT\tSTATUS\tCONNECTIONS\tIN FLIGHT\n")
	for _, u := range s.Upstreams {
		for _, e := range u.Endpoints {
			fmt.Fprintf(&w, "%s\t%s\t%s\t%s\t%d\t%d\n", u.Name, u.Circuit, e.Address, e.State(), e.Connections,
				e.RequestsInFlight)
		}
		for _, name := range u.UnresolvedNames {
			fmt.Fprintf(&w, "%s\t%s\t%s\t%s\t\t\n", u.Name, u.Circuit, name.Host, name.Message)
		}
	}
	writeVarying(&w, s.Upstreams)
	if len(p.Bundles) > 0 {
		fmt.Fprint(&w, "\nBUNDLE\tREVISION\tCONFIRMED\tLAST FAILURE\n")
		for i := range p.Bundles {
			fmt.Fprintln(&w, bundleRow(&p.Bundles[i]))
		}
	}
	if len(s.States) > 0 {
		fmt.Fprint(&w, "\nSTATE\tAGE\n")
		for _, one := range s.States {
			fmt.Fprintf(&w, "%s\t%s\n", one.Path, time.Duration(one.AgeSeconds)*time.Second)
		}
	}
	if len(s.Certificates) > 0 {
		fmt.Fprint(&w, "\nCERTIFICATE\tEXPIRES\n")
		for _, one := range s.Certificates {
			fmt.Fprintf(&w, "%s\t%s\n", one.Name, one.ExpireTime.Format(time.RFC3339))
		}
	}
	if err := align(&b, w.Bytes()); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\n%s in flight hold %d of %d bytes\n", quote.Count(s.Requests.InFlight, "request"),
		s.Requests.BodyBytes, s.Requests.BodyBytesLimit)
	fmt.Fprintf(&b, "lost: %s of the log", quote.Count(s.Lost.LogLines, "line"))
	for _, one := range s.Lost.AuditEvents {
		fmt.Fprintf(&b, ", %s of the audit log for its %s", quote.Count(one.Events, "event"), one.Sink)
	}
	for _, one := range s.Lost.Decisions {
		fmt.Fprintf(&b, ", %s of the decision log for its %s (%s)", quote.Count(one.Events, "event"), one.Sink,
			one.Reason)
	}
	if n := s.Lost.Spans; n > 0 {
		fmt.Fprintf(&b, ", %s", quote.Count(n, "span"))
	}
	if n := s.Lost.MetricPushes; n > 0 {
		fmt.Fprintf(&b, ", metrics sent in vain %s", quote.Count(n, "time"))
	}
	b.WriteString("\n")
	return printable(to, b.Bytes())
}

// printForecast prints what becomes of a request for people.
func printForecast(to io.Writer, f *admin.Forecast) error {
	var b bytes.Buffer
	fmt.Fprintln(&b, f.Request)
	if r := f.Route; r != nil {
		fmt.Fprintf(&b, "  route %s", strings.TrimSpace(r.Name+" "+r.Host+r.PathPrefix))
		if r.Upstream != "" {
			fmt.Fprintf(&b, " to the upstream %s", r.Upstream)
		}
		if r.Listener != "" {
			fmt.Fprintf(&b, ", by the rule %s and the listener %s", r.Rule, r.Listener)
		}
		b.WriteString("\n")
	}
	if a := f.About; a != nil {
		fmt.Fprintf(&b, "  %s %s\n", a.Verb,
			cmp.Or(strings.Trim(strings.Join([]string{a.Group, a.Version, a.Resource, a.Subresource}, "/"), "/"),
				a.Path))
	}
	if f.Refusal != "" {
		fmt.Fprintf(&b, "  refused: %s\n", f.Refusal)
		return printable(to, b.Bytes())
	}
	if len(f.Stages) > 0 {
		fmt.Fprintf(&b, "  stages: %s\n", strings.Join(f.Stages, ", "))
	}
	if p := f.Preconditions; p != nil {
		since := ""
		if p.Since != nil {
			since = " (since " + p.Since.Format(time.RFC3339) + ")"
		}
		fmt.Fprintf(&b, "  preconditions: the %s compares them, because %s%s\n", strings.ToLower(p.ComparedBy),
			p.Because, since)
	}
	var w bytes.Buffer // rows whose cells are set apart by tabs
	fmt.Fprint(&w, "\nAPPLIES\tPHASE\tKIND\tNAME\tBECAUSE\n")
	for _, all := range [][]admin.Applicability{f.Policies, f.Limits} {
		for _, o := range all {
			fmt.Fprintf(&w, "%s\t%s\t%s\t%s\t%s\n", o.Applies, o.Phase, o.Kind, o.Name,
				joinedBy("; ", o.Because, originOf(o.Folder, o.Owner)))
			for _, one := range o.Bindings {
				fmt.Fprintf(&w, "  %s\t\tbinding\t%s\t%s\n", one.Applies, one.Name, one.Because)
			}
		}
	}
	if err := align(&b, w.Bytes()); err != nil {
		return err
	}
	return printable(to, b.Bytes())
}

// originOf says where a policy comes from, if its folder has an owner.
func originOf(folder, owner string) string {
	if owner == "" {
		return ""
	}
	return "from '" + folder + "' of '" + owner + "'"
}

// joinedBy joins texts that are not empty.
func joinedBy(separator string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), separator)
}

// align writes rows in columns.
func align(to io.Writer, rows []byte) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	if _, err := w.Write(rows); err != nil {
		return err
	}
	return w.Flush()
}

// printable writes text without the control characters by which it could move the cursor of a terminal, and without
// spaces at the ends of lines.
func printable(to io.Writer, text []byte) error {
	for line := range bytes.Lines(text) {
		line = bytes.Map(func(r rune) rune {
			if r < ' ' || 0x7f <= r && r < 0xa0 {
				return ' '
			}
			return r
		}, bytes.TrimSuffix(line, []byte("\n")))
		if _, err := to.Write(append(bytes.TrimRight(line, " "), '\n')); err != nil {
			return err
		}
	}
	return nil
}

// writeVarying writes the resources whose objects get no ETags.
func writeVarying(w *bytes.Buffer, all []admin.Upstream) {
	isBegun := false
	for i := range all {
		for _, r := range all[i].VaryingReads() {
			if !isBegun {
				fmt.Fprint(w, "\nWITHOUT ETAGS\tUPSTREAM\tBECAUSE\n")
				isBegun = true
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", r, all[i].Name, admin.Varying)
		}
	}
}

// writeTried writes what descriptions that are only tried would have refused, by operation.
func writeTried(w *bytes.Buffer, rollouts []admin.Rollout) {
	isBegun := false
	for i := range rollouts {
		for j := range rollouts[i].Operations {
			o := &rollouts[i].Operations[j]
			if !isBegun {
				fmt.Fprint(w, "\nOPERATION\tWOULD HAVE REFUSED\tBECAUSE OF\n")
				isBegun = true
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", o.Operation, o.Share(), o.Texts())
		}
	}
}
