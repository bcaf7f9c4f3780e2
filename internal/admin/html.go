package admin

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/markup"
)

// style is the style of all pages. Its colours have the contrast of WCAG AA, in the light and in the dark. On narrow screens each
// cell of a table stands on a line of its own, behind the head of its column.
const style = `:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #1c2330; background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; } p, h1, h2 { overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #dde2ea; vertical-align: top; overflow-wrap: break-word; }
th { font-weight: 600; } td { overflow-wrap: anywhere; min-width: 6.2rem; font-variant-numeric: tabular-nums; }
code, pre, input, textarea, select { font: 13px/1.45 ui-monospace, monospace; }
pre { background: #f4f6f9; padding: .6rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.good { color: #11692f; } .bad { color: #b3141c; font-weight: 600; } .maybe { color: #7a4f00; } a { color: #0b57b0; }
input, textarea, select, button { color: inherit; background: #fff; border: 1px solid #76808e; border-radius: 3px; }
input, textarea, select { padding: .3rem; } input { width: 30rem; max-width: 70%; } textarea { resize: vertical; }
button { padding: .3rem .8rem; } ::placeholder { color: #666f7c; opacity: 1; }
@media (max-width: 40rem) {
  thead { display: none; } tr { display: block; border-bottom: 1px solid #dde2ea; padding: .3rem 0; }
  td { display: block; border: 0; padding: .1rem 0; } td:empty { display: none; }
  td:not(:first-child, [data-head=""])::before { content: attr(data-head) ": "; color: #566370; }
  td:first-child { font-weight: 600; }
}
@media (prefers-color-scheme: dark) {
  body { color: #e4e8ef; background: #14181f; } th, td, tr { border-color: #333b47; } pre { background: #1d232c; }
  .good { color: #6fd391; } .bad { color: #ff8a8f; } .maybe { color: #f0c060; } a { color: #8ab4f8; }
  input, textarea, select, button { background: #1d232c; border-color: #7d8896; } ::placeholder { color: #9aa7b4; }
  td:not(:first-child, [data-head=""])::before { color: #9aa7b4; }
}
`

// pagePolicy lets a browser load nothing, and run nothing, that is not on the page itself.
var pagePolicy = "default-src 'none'; style-src " + hashSource(style) + "; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// hashSource names a style or a script on a page to the policy of the page.
func hashSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// pageHead begins a page, up to its style.
func pageHead(title string) string {
	return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>` + title + ` - Admission Gateway</title>
`
}

// shown is the data of the page.
type shown struct {
	Status
	Asked    string    // the request that is asked about; "" if none is
	Forecast *Forecast // nil if none is asked about
	// plays says that there is a playground.
	plays bool
}

// writeHTML answers with a page.
func writeHTML(ctx *fasthttp.RequestCtx, page, policy string) {
	h := &ctx.Response.Header
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	ctx.SetContentType("text/html; charset=utf-8")
	ctx.SetBodyString(page)
}

// page returns the status page for people. It has no script, and takes its one style from itself.
func (s *shown) page() string {
	p := page{plays: s.plays}
	p.Add(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Admission Gateway</title>
<style>` + style + `</style>
</head>
<body>
`)
	p.health(&s.Status)
	p.refusals(s.Refusals)
	p.question(s.Asked, s.Forecast)
	p.policies(&s.Policies)
	p.resources(&s.Status)
	p.operations(s.Operations)
	p.verdicts(&s.Status)
	p.terms(&s.Status)
	p.Add("<p>In flight: {}, with {} of {} bytes.</p>\n\n", count(s.Requests.InFlight, "request"), s.Requests.BodyBytes, s.Requests.BodyBytesLimit)
	p.limits(s.RateLimits, &s.RequestLimits)
	p.idle(s.Idle)
	p.listeners(s.Listeners)
	p.upstreams(s.Upstreams)
	p.states(s.States, s.Certificates)
	p.Add("\n<h2>Lost</h2>\n<p>{} of the log", count(int64(s.Lost.LogLines), "line"))
	for _, a := range s.Lost.AuditEvents {
		p.Add(", {} of the audit log for its {}", count(a.Events, "event"), a.Sink)
	}
	for _, d := range s.Lost.Decisions {
		p.Add(", {} of the decision log for its {} ({})", count(d.Events, "event"), d.Sink, d.Reason)
	}
	if n := s.Lost.Spans; n > 0 {
		p.Add(", {}", count(int64(n), "span"))
	}
	if n := s.Lost.MetricPushes; n > 0 {
		p.Add(", metrics sent in vain {}", count(int64(n), "time"))
	}
	p.Add(".</p>\n</body>\n</html>\n")
	return p.String()
}

// page is a page that is being written.
type page struct {
	markup.Page
	heads []string // of the table that is being written
	plays bool
}

func since(seconds int64) string { return (time.Duration(seconds) * time.Second).String() }

func at(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// count is a number of things, in words.
func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// good and bad write a state.
func (p *page) good(state string) { p.Add(`<span class="good">{}</span>`, state) }
func (p *page) bad(state string)  { p.Add(`<span class="bad">{}</span>`, state) }

// table begins a table with the heads of its columns.
func (p *page) table(heads ...string) {
	p.heads = heads
	p.Add("<table>\n<thead><tr>")
	for _, head := range heads {
		p.Add("<th>{}</th>", head)
	}
	p.Add("</tr></thead>\n<tbody>\n")
}

// row writes a row of a table. A cell is a value, or a function that writes it.
func (p *page) row(cells ...any) {
	p.Add("<tr>")
	for i, cell := range cells {
		switch cell := cell.(type) {
		case func():
			p.Add(`<td data-head="{}">`, p.heads[i])
			cell()
			p.Add("</td>")
		default:
			p.Add(`<td data-head="{}">{}</td>`, p.heads[i], cell)
		}
	}
	p.Add("</tr>\n")
}

// end ends a table.
func (p *page) end() { p.Add("</tbody>\n</table>\n") }

// code returns a cell of code.
func (p *page) code(text string) func() { return func() { p.AddIf("<code>{}</code>", text) } }

func (p *page) health(s *Status) {
	p.Add("<h1>Admission Gateway {}</h1>\n<p>", s.Version)
	if s.IsReady() {
		p.good("Ready")
	} else {
		p.bad("Not ready")
	}
	p.Add(", up {} since {}, {}.\n", since(s.UptimeSeconds), at(s.StartTime), s.GoVersion)
	if p.plays {
		p.Add(`<a href="/playground">Playground</a>. `)
	}
	p.Add(`As JSON: <a href="/status">status</a>, <a href="/policies">policies</a>, <a href="/upstreams">upstreams</a>. <a href="/metrics">Metrics</a>.</p>` + "\n")
	p.table("Check", "State")
	for _, check := range s.Ready {
		p.row(check.Name, func() {
			switch {
			case check.Failure != "":
				p.bad(check.Failure)
			case check.Warning != "":
				p.bad(check.Warning)
			default:
				p.good("ok")
			}
		})
	}
	p.end()
}

// refusals shows the last refusals, each with a way to have it explained.
func (p *page) refusals(all []Refusal) {
	if len(all) == 0 {
		return
	}
	p.Add("\n<h2>Last refusals</h2>\n")
	p.table("Request", "Answer", "Policy", "Field", "Time", "")
	for i := range all {
		r := &all[i]
		p.row(func() { p.Add("{} <code>{}</code>", r.Method, r.Path) }, strings.TrimSpace(fmt.Sprint(r.Code, " ", r.Reason)), r.Policy, r.Field, at(r.Time), func() {
			if p.plays {
				p.Add(`<a href="{}">explain this</a>`, r.link())
			} else {
				p.Add(`<a href="{}">explain this</a>`, "/?request="+url.QueryEscape(r.Method+" "+r.Path))
			}
		})
	}
	p.end()
}

func (p *page) question(asked string, f *Forecast) {
	p.Add(`
<h2>Which policies are about a request?</h2>
<form action="/" method="get">
<input name="request" value="{}" placeholder="POST /shop/users" aria-label="method and path">
<button>Ask</button>
</form>
`, asked)
	if p.plays {
		method, path, _ := strings.Cut(asked, " ")
		p.Add(`<p><a href="{}">What becomes of it with a body?</a></p>`+"\n", inForceLink(method, path))
	}
	if f == nil {
		return
	}
	p.AddIf(`<p class="bad">{}</p>`+"\n", f.Refusal)
	if r := f.Route; r != nil {
		p.Add("<p>Route ")
		p.AddIf("<b>{}</b> ", r.Name)
		p.Add("<code>{}{}</code> to the upstream <b>{}</b></p>\n", r.Host, r.PathPrefix, r.Upstream)
	}
	p.about(f.About)
	if len(f.Policies)+len(f.Limits) > 0 {
		p.table("Policy", "Kind", "Phase", "Applies", "Because")
		p.outlooks(f.Policies)
		p.outlooks(f.Limits)
		p.end()
	}
}

func (p *page) about(a *About) {
	if a == nil {
		return
	}
	p.Add("<p>{} <b>{}", a.Verb, a.Resource)
	p.AddIf("/{}", a.Subresource)
	p.Add("</b>")
	p.AddIf(" of {}", a.Group)
	p.AddIf(" in version {}", a.Version)
	p.AddIf(", namespace {}", a.Namespace)
	p.AddIf(", name {}", a.Name)
	if !a.IsDescribed {
		p.Add("; no policy file describes it")
	}
	p.Add("</p>\n")
}

func (p *page) outlooks(all []Outlook) {
	for i := range all {
		o := &all[i]
		p.row(func() {
			p.Add("{}", o.Name)
			p.AddIf(", from {}", o.Folder)
			p.AddIf(" of {}", o.Owner)
			for j := range o.Bindings {
				b := &o.Bindings[j]
				p.Add("<br>&nbsp;binding {}: {}", b.Name, b.Applies)
				p.AddIf(", {}", b.Because)
			}
		}, o.Kind, o.Phase, func() {
			switch o.Applies {
			case "Yes":
				p.good("Yes")
			case "Maybe":
				p.Add(`<span class="maybe">Maybe</span>`)
			default:
				p.Add("No")
			}
		}, o.Because)
	}
}

func (p *page) policies(of *Policies) {
	p.Add("\n<h2>Policies</h2>\n<p>Generation {}, hash <code>{}</code>, in force since {}.</p>\n", of.Generation, of.Hash, at(of.LoadTime))
	if r := of.LastReload; r != nil {
		p.Add("<p>Last read at {}: ", at(r.Time))
		if r.Outcome == refused {
			p.bad(r.Outcome)
		} else {
			p.Add("{}", r.Outcome)
		}
		p.Add(".</p>\n")
		p.findings(r.Findings)
	}
	if f := of.LastFailure; f != nil {
		p.Add(`<p class="bad">The newest files are not in force since {}.</p>`+"\n", at(f.Time))
		if of.LastReload == nil || of.LastReload.Outcome != refused { // else they stand above
			p.findings(f.Findings)
		}
	}
	p.policyFolders(of.Folders)
	p.table("File", "Objects")
	for _, file := range of.Files {
		p.row(p.code(file.Path), func() {
			for _, o := range file.Objects {
				p.Add("{} ", o.Kind)
				p.AddIf("{}/", o.Namespace)
				p.Add("{}<br>", o.Name)
			}
		})
	}
	if len(of.Files) == 0 {
		p.row("none", "")
	}
	p.end()
}

// refused is the outcome of a reading of files with errors.
const refused = "Refused"

// policyFolders shows the folders with owners. It is empty if there are none.
func (p *page) policyFolders(all []PolicyFolder) {
	if len(all) == 0 {
		return
	}
	p.table("Folder", "Owner", "Concerns", "Hash", "State")
	for i := range all {
		f := &all[i]
		p.row(p.code(f.Path), f.Owner, f.Concerns, p.code(f.Hash), func() {
			if f.LastFailure == nil {
				p.Add("{}", f.State())
			} else {
				p.bad(f.State())
				p.findings(f.LastFailure.Findings)
			}
		})
	}
	p.end()
}

// maxRows bounds the rows of resources and operations: published documents have more than a thousand.
const maxRows = 200

// resources shows the resources that files describe, and how many requests came for each. It is empty if there is neither.
func (p *page) resources(s *Status) {
	if len(s.Resources) > 0 {
		p.Add("\n<h2>Resources in force</h2>\n")
		p.table("Resource", "Version", "Kind", "Paths")
		shown := s.Resources[:min(len(s.Resources), maxRows)]
		for _, r := range shown {
			p.row(r.Name, r.Version, r.Kind, p.code(strings.Join(r.Paths, ", ")))
		}
		p.end()
		if len(shown) < len(s.Resources) {
			p.Add("<p>These are {} of {} resources. <a href=\"/status\">/status</a> has all.</p>\n", len(shown), len(s.Resources))
		}
	}
	if len(s.Answers) > 0 {
		p.Add("\n<h2>Requests since the start</h2>\n")
		p.table("Resource", "Requests", "A second, in the last minute", "Refused", "Failed")
		for i := range s.Answers[:min(len(s.Answers), maxRows)] {
			a := &s.Answers[i]
			p.row(a.Resource, a.Requests, a.Rate(), a.Refused, a.Failed)
		}
		p.end()
	}
}

// operations shows the first operations that files describe. It is empty if they describe none.
func (p *page) operations(all []Operation) {
	if len(all) == 0 {
		return
	}
	p.Add("\n<h2>Operations</h2>\n")
	p.table("Path", "Method", "Resource", "Routes", "Holds")
	shown := all[:min(len(all), maxRows)]
	for _, o := range shown {
		p.row(p.code(o.Path), o.Method, o.Resource, strings.Join(o.Routes, ", "), o.Holds)
	}
	p.end()
	if len(shown) < len(all) {
		p.Add("<p>These are {} of {} operations. <code>gateway check --list</code> and <a href=\"/status\">/status</a> have all.</p>\n", len(shown), len(all))
	}
}

func (p *page) findings(all []string) {
	if len(all) == 0 {
		return
	}
	p.Add("<pre>")
	for _, finding := range all {
		p.Add("{}\n", finding)
	}
	p.Add("</pre>\n")
}

func (p *page) verdicts(s *Status) {
	p.Add("\n<h2>Verdicts and limits since the start</h2>\n")
	p.table("Policy", "Verdict", "Requests")
	for _, all := range [][]Tally{s.Verdicts, s.Limits} {
		for _, t := range all {
			p.row(t.Policy, t.Verdict, t.Count)
		}
	}
	p.end()
	for _, line := range s.Failing() {
		p.Add(`<p class="bad">{}</p>`+"\n", line)
	}
}

func (p *page) terms(s *Status) {
	if len(s.Rollouts) > 0 {
		p.Add("\n<h2>Rollouts</h2>\n")
		p.table("Policy", "Enforced", "Otherwise")
		for i := range s.Rollouts {
			r := &s.Rollouts[i]
			p.row(r.Policy, cmp.Or(r.Enforced, "everywhere"), r.Sentence())
		}
		p.end()
		p.triedOperations(s)
	}
	if len(s.Exceptions) > 0 {
		p.Add("\n<h2>Exceptions</h2>\n")
		p.table("Exception", "Policies", "Reason", "Ends", "Used")
		for i := range s.Exceptions {
			p.exception(&s.Exceptions[i])
		}
		p.end()
	}
}

// triedOperations shows what descriptions that are only tried would have refused, by operation.
func (p *page) triedOperations(s *Status) {
	isBegun := false
	for i := range s.Rollouts {
		for j := range s.Rollouts[i].Operations {
			o := &s.Rollouts[i].Operations[j]
			if !isBegun {
				p.table("Operation", "Would have refused", "Because of")
				isBegun = true
			}
			p.row(o.Operation, o.Share(), o.Texts())
		}
	}
	if isBegun {
		p.end()
	}
}

func (p *page) exception(e *Exception) {
	p.row(func() {
		p.Add("{}", e.Name)
		p.AddIf(", from {}", e.Folder)
		p.AddIf(" of {}", e.Owner)
	}, func() {
		for _, policy := range e.Policies {
			p.Add("{}<br>", policy)
		}
	}, e.Reason, func() {
		if e.IsExpired {
			p.bad(e.End())
		} else {
			p.Add("{}", e.End())
		}
	}, e.Used)
}

func (p *page) limits(rates []RateLimit, each *RequestLimits) {
	p.Add("\n<h2>Limits</h2>\n")
	if len(rates) > 0 {
		p.table("Limit", "Requests", "By", "Over time", "At a time", "Scope", "Mode")
		for i := range rates {
			r := &rates[i]
			p.row(r.Name, r.Matches(), r.KeyText(), r.Rate(), r.InFlight(), r.Scope(), r.Mode)
		}
		p.end()
	}
	p.Add(`<p>Of each request: a body of {} bytes, {} deep, with {} values; a head of {} bytes,
a target of {} bytes, {} headers. In all: {}, {} at a time.</p>
`, each.BodyBytes, each.JSONDepth, each.JSONNodes, each.HeaderBytes, each.URIBytes, each.Headers, count(each.Connections, "connection"), count(each.HeavyRequests, "heavy request"))
}

// idle shows the places of the policy files that apply to no request. It is empty if there are none.
func (p *page) idle(all []Idle) {
	if len(all) == 0 {
		return
	}
	p.Add("\n<h2>What applies to nothing</h2>\n")
	p.table("Object", "Place", "Reason", "Because")
	for i := range all {
		one := &all[i]
		p.row(one.Kind+" "+one.Name, one.Place, one.Reason, one.Because())
	}
	p.end()
}

// listeners shows where requests come from. It is empty before any do.
func (p *page) listeners(all []Listener) {
	if len(all) == 0 {
		return
	}
	p.Add("\n<h2>Listeners</h2>\n")
	p.table("Listener", "Addresses", "Protocol", "Hosts", "Routes", "State")
	for i := range all {
		l := &all[i]
		p.row(l.Name, strings.Join(l.Addresses, ", "), l.ProtocolText(), l.HostsText(), l.Routes, func() {
			if l.Problem != "" {
				p.bad(l.State())
			} else {
				p.good(l.State())
			}
		})
	}
	p.end()
}

func (p *page) upstreams(all []Upstream) {
	p.Add("\n<h2>Upstreams</h2>\n")
	p.table("Upstream", "Circuit", "Endpoint", "Status", "Connections", "In flight")
	for i := range all {
		u := &all[i]
		for j := range u.Endpoints {
			e := &u.Endpoints[j]
			p.row(u.Name, u.Circuit, e.Address+" ("+e.Host+")", func() {
				switch {
				case e.IsTroubled():
					p.bad(e.State())
				case e.IsKnown():
					p.good(e.State())
				default:
					p.Add("{}", e.State())
				}
			}, e.Connections, e.RequestsInFlight)
		}
		for _, n := range u.UnresolvedNames {
			p.row(u.Name, "", n.Host, func() { p.bad(n.Message) })
		}
	}
	p.end()
	p.varyingReads(all)
}

// varyingReads shows the resources whose objects get no ETags. It is empty if there are none.
func (p *page) varyingReads(all []Upstream) {
	isBegun := false
	for i := range all {
		for _, r := range all[i].VaryingReads() {
			if !isBegun {
				p.Add("\n<h2>Resources without ETags</h2>\n")
				p.table("Resource", "Upstream", "Because")
				isBegun = true
			}
			p.row(r, all[i].Name, Varying)
		}
	}
	if isBegun {
		p.end()
	}
}

func (p *page) states(states []State, certificates []Certificate) {
	if len(states) > 0 {
		p.Add("\n<h2>State that policies read</h2>\n")
		p.table("Path", "Age")
		for _, s := range states {
			p.row(s.Path, since(s.AgeSeconds))
		}
		p.end()
	}
	if len(certificates) > 0 {
		p.Add("\n<h2>Certificates</h2>\n")
		p.table("Certificate", "Expires")
		for _, c := range certificates {
			p.row(c.Name, at(c.ExpireTime))
		}
		p.end()
	}
}
