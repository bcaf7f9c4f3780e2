package admin

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/markup"
)

// style is the page's one style.
const style = `body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #1c2330; background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #dde2ea; vertical-align: top; overflow-wrap: anywhere; }
th { font-weight: 600; } td.number, th.number { text-align: right; }
code, pre, input { font: 13px/1.45 ui-monospace, monospace; } pre { background: #f4f6f9; padding: .6rem; overflow-x: auto; white-space: pre-wrap; }
.good { color: #11692f; } .bad { color: #b3141c; font-weight: 600; } .maybe { color: #855600; }
input { width: 30rem; max-width: 70%; padding: .3rem; } button { padding: .3rem .8rem; }
@media (prefers-color-scheme: dark) {
  body { color: #e4e8ef; background: #14181f; } th, td { border-color: #333b47; } pre { background: #1d232c; }
  .good { color: #6fd391; } .bad { color: #ff8a8f; } .maybe { color: #f0c060; } a { color: #8ab4f8; }
}
`

// pagePolicy lets a browser load nothing, and run nothing, that is not on the page itself.
var pagePolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()

// shown is the data of the page.
type shown struct {
	Status
	Asked    string    // the request that is asked about; "" if none is
	Forecast *Forecast // nil if none is asked about
}

// writePage answers with the page.
func writePage(ctx *fasthttp.RequestCtx, s *shown) {
	h := &ctx.Response.Header
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	ctx.SetContentType("text/html; charset=utf-8")
	ctx.SetBodyString(s.page())
}

// page returns the status page for people. It has no script, and takes its one style from itself.
func (s *shown) page() string {
	p := page{}
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
	p.question(s.Asked, s.Forecast)
	p.policies(&s.Policies)
	p.operations(s.Operations)
	p.verdicts(&s.Status)
	p.terms(&s.Status)
	p.Add("<p>{} requests are in flight, and hold {} of {} bytes.</p>\n\n",
		s.Requests.InFlight, s.Requests.BodyBytes, s.Requests.BodyBytesLimit)
	p.limits(s.RateLimits, &s.RequestLimits)
	p.idle(s.Idle)
	p.upstreams(s.Upstreams)
	p.states(s.States, s.Certificates)
	p.Add("\n<h2>Lost</h2>\n<p>{} lines of the log", s.Lost.LogLines)
	for _, a := range s.Lost.AuditEvents {
		p.Add(", {} events of the audit log for its {}", a.Events, a.Sink)
	}
	for _, d := range s.Lost.Decisions {
		p.Add(", {} events of the decision log for its {} ({})", d.Events, d.Sink, d.Reason)
	}
	p.Add(".</p>\n</body>\n</html>\n")
	return p.String()
}

type page struct{ markup.Page }

func since(seconds int64) string { return (time.Duration(seconds) * time.Second).String() }

func at(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// good and bad write a state.
func (p *page) good(state string) { p.Add(`<span class="good">{}</span>`, state) }
func (p *page) bad(state string)  { p.Add(`<span class="bad">{}</span>`, state) }

func (p *page) health(s *Status) {
	p.Add("<h1>Admission Gateway {}</h1>\n<p>", s.Version)
	if s.IsReady() {
		p.good("Ready")
	} else {
		p.bad("Not ready")
	}
	p.Add(`,
up {} since {}, {}.
As JSON: <a href="/status">status</a>, <a href="/policies">policies</a>, <a href="/upstreams">upstreams</a>. <a href="/metrics">Metrics</a>.</p>
<table>
<tr><th>Check</th><th>State</th></tr>
`, since(s.UptimeSeconds), at(s.StartTime), s.GoVersion)
	for _, check := range s.Ready {
		p.Add("<tr><td>{}</td><td>", check.Name)
		if check.Failure != "" {
			p.bad(check.Failure)
		} else if check.Warning != "" {
			p.bad(check.Warning)
		} else {
			p.good("ok")
		}
		p.Add("</td></tr>\n")
	}
	p.Add("</table>\n\n")
}

func (p *page) question(asked string, f *Forecast) {
	p.Add(`<h2>Which policies are about a request?</h2>
<form action="/" method="get">
<input name="request" value="{}" placeholder="POST /shop/users" aria-label="method and path">
<button>Ask</button>
</form>
`, asked)
	if f != nil {
		p.Add("\n")
		p.AddIf(`<p class="bad">{}</p>`, f.Refusal)
		p.Add("\n")
		if r := f.Route; r != nil {
			p.Add("<p>Route ")
			p.AddIf("<b>{}</b> ", r.Name)
			p.Add("<code>{}{}</code> to the upstream <b>{}</b></p>", r.Host, r.PathPrefix, r.Upstream)
		}
		p.Add("\n")
		p.about(f.About)
		p.Add("\n")
		if len(f.Policies)+len(f.Limits) > 0 {
			p.Add("<table>\n<tr><th>Policy</th><th>Kind</th><th>Phase</th><th>Applies</th><th>Because</th></tr>\n")
			p.outlooks(f.Policies)
			p.outlooks(f.Limits)
			p.Add("</table>")
		}
		p.Add("\n")
	}
	p.Add("\n\n")
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
	p.Add("</p>")
}

func (p *page) outlooks(all []Outlook) {
	for i := range all {
		o := &all[i]
		p.Add("<tr><td>{}", o.Name)
		for j := range o.Bindings {
			b := &o.Bindings[j]
			p.Add("<br>&nbsp;binding {}: {}", b.Name, b.Applies)
			p.AddIf(", {}", b.Because)
		}
		p.Add("</td><td>{}</td><td>{}</td>\n<td>", o.Kind, o.Phase)
		switch o.Applies {
		case "Yes":
			p.good("Yes")
		case "Maybe":
			p.Add(`<span class="maybe">Maybe</span>`)
		default:
			p.Add("No")
		}
		p.Add("</td><td>{}</td></tr>\n", o.Because)
	}
}

func (p *page) policies(of *Policies) {
	p.Add("<h2>Policies</h2>\n<p>Generation {}, hash <code>{}</code>, in force since {}.</p>\n", of.Generation, of.Hash, at(of.LoadTime))
	if r := of.LastReload; r != nil {
		p.Add("<p>Last read at {}: ", at(r.Time))
		if r.Outcome == "Refused" {
			p.bad(r.Outcome)
		} else {
			p.Add("{}", r.Outcome)
		}
		p.Add(".</p>\n")
		if len(r.Findings) > 0 {
			p.findings(r.Findings)
		}
	}
	p.Add("\n")
	if f := of.LastFailure; f != nil {
		p.Add(`<p class="bad">The newest files are not in force since {}:</p>`, at(f.Time))
		p.findings(f.Findings)
	}
	p.policyFolders(of.Folders)
	p.Add("\n<table>\n<tr><th>File</th><th>Objects</th></tr>\n")
	for _, file := range of.Files {
		p.Add("<tr><td><code>{}</code></td><td>", file.Path)
		for _, o := range file.Objects {
			p.Add("{} ", o.Kind)
			p.AddIf("{}/", o.Namespace)
			p.Add("{}<br>", o.Name)
		}
		p.Add("</td></tr>\n")
	}
	if len(of.Files) == 0 {
		p.Add(`<tr><td colspan="2">none</td></tr>` + "\n")
	}
	p.Add("</table>\n\n")
}

// policyFolders shows the folders with owners. It is empty if there are none.
func (p *page) policyFolders(all []PolicyFolder) {
	if len(all) == 0 {
		return
	}
	p.Add("\n<table>\n<tr><th>Folder</th><th>Owner</th><th>Concerns</th><th>Hash</th><th>State</th></tr>\n")
	for i := range all {
		f := &all[i]
		p.Add("<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td><code>{}</code></td><td>", f.Path, f.Owner, f.Concerns, f.Hash)
		if f.LastFailure == nil {
			p.Add("{}", f.State())
		} else {
			p.bad(f.State())
			p.findings(f.LastFailure.Findings)
		}
		p.Add("</td></tr>\n")
	}
	p.Add("</table>\n")
}

// maxOperations bounds the rows of operations: published documents have more than a thousand.
const maxOperations = 200

// operations shows the first operations that files describe. It is empty if they describe none.
func (p *page) operations(all []Operation) {
	if len(all) == 0 {
		return
	}
	p.Add("<h2>Operations</h2>\n<table>\n<tr><th>Method</th><th>Path</th><th>Resource</th><th>Routes</th><th>Holds</th></tr>\n")
	shown := all[:min(len(all), maxOperations)]
	for _, o := range shown {
		p.Add("<tr><td>{}</td><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td></tr>\n", o.Method, o.Path, o.Resource, strings.Join(o.Routes, ", "), o.Holds)
	}
	p.Add("</table>\n")
	if len(shown) < len(all) {
		p.Add("<p>These are {} of {} operations. <code>gateway check --list</code> and <a href=\"/status\">/status</a> have all.</p>\n", len(shown), len(all))
	}
	p.Add("\n")
}

func (p *page) findings(all []string) {
	p.Add("<pre>")
	for _, finding := range all {
		p.Add("{}\n", finding)
	}
	p.Add("</pre>")
}

func (p *page) verdicts(s *Status) {
	p.Add(`<h2>Verdicts and limits since the start</h2>
<table>
<tr><th>Policy</th><th>Verdict</th><th class="number">Requests</th></tr>
`)
	for _, all := range [][]Tally{s.Verdicts, s.Limits} {
		for _, t := range all {
			p.Add(`<tr><td>{}</td><td>{}</td><td class="number">{}</td></tr>`+"\n", t.Policy, t.Verdict, t.Count)
		}
	}
	p.Add("</table>\n")
	for _, line := range s.Failing() {
		p.Add(`<p class="bad">{}</p>`+"\n", line)
	}
}

func (p *page) terms(s *Status) {
	if len(s.Rollouts) > 0 {
		p.Add("<h2>Rollouts</h2>\n<table>\n<tr><th>Policy</th><th>Enforced</th><th>Otherwise</th></tr>\n")
		for i := range s.Rollouts {
			r := &s.Rollouts[i]
			p.Add("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", r.Policy, cmp.Or(r.Enforced, "everywhere"), r.Sentence())
		}
		p.Add("</table>")
		p.triedOperations(s)
	}
	p.Add("\n")
	if len(s.Exceptions) > 0 {
		p.Add(`<h2>Exceptions</h2>
<table>
<tr><th>Exception</th><th>Policies</th><th>Reason</th><th>Ends</th><th class="number">Used</th></tr>
`)
		for i := range s.Exceptions {
			p.exception(&s.Exceptions[i])
		}
		p.Add("</table>")
	}
	p.Add("\n")
}

// triedOperations shows what descriptions that are only tried would have refused, by operation.
func (p *page) triedOperations(s *Status) {
	isBegun := false
	for i := range s.Rollouts {
		for j := range s.Rollouts[i].Operations {
			o := &s.Rollouts[i].Operations[j]
			if !isBegun {
				p.Add("\n<table>\n<tr><th>Operation</th><th>Would have refused</th><th>Because of</th></tr>\n")
				isBegun = true
			}
			p.Add("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", o.Operation, o.Share(), o.Texts())
		}
	}
	if isBegun {
		p.Add("</table>")
	}
}

func (p *page) exception(e *Exception) {
	p.Add("<tr><td>{}</td><td>", e.Name)
	for _, policy := range e.Policies {
		p.Add("{}<br>", policy)
	}
	p.Add("</td><td>{}</td><td>", e.Reason)
	if e.IsExpired {
		p.bad(e.End())
	} else {
		p.Add("{}", e.End())
	}
	p.Add(`</td><td class="number">{}</td></tr>`+"\n", e.Used)
}

func (p *page) limits(rates []RateLimit, each *RequestLimits) {
	p.Add("<h2>Limits</h2>\n")
	if len(rates) > 0 {
		p.Add(`<table>
<tr><th>Limit</th><th>Requests</th><th>By</th><th>Over time</th><th>At a time</th><th>Scope</th><th>Mode</th></tr>
`)
		for i := range rates {
			r := &rates[i]
			p.Add("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
				r.Name, r.Matches(), r.KeyText(), r.Rate(), r.InFlight(), r.Scope(), r.Mode)
		}
		p.Add("</table>")
	}
	p.Add(`
<p>Of each request: a body of {} bytes, {} deep, with {} values; a head of {} bytes,
a target of {} bytes, {} headers. In all: {} connections, {} heavy requests at a time.</p>

`, each.BodyBytes, each.JSONDepth, each.JSONNodes, each.HeaderBytes, each.URIBytes, each.Headers, each.Connections, each.HeavyRequests)
}

// idle shows the places of the policy files that apply to no request. It is empty if there are none.
func (p *page) idle(all []Idle) {
	for i := range all {
		if i == 0 {
			p.Add("<h2>What applies to nothing</h2>\n<table>\n<tr><th>Object</th><th>Place</th><th>Reason</th><th>Because</th></tr>\n")
		}
		one := &all[i]
		p.Add("<tr><td>{} {}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", one.Kind, one.Name, one.Place, one.Reason, one.Because())
	}
	if len(all) > 0 {
		p.Add("</table>\n\n")
	}
}

func (p *page) upstreams(all []Upstream) {
	p.Add(`<h2>Upstreams</h2>
<table>
<tr><th>Upstream</th><th>Circuit</th><th>Endpoint</th><th>Status</th><th class="number">Connections</th><th class="number">In flight</th></tr>
`)
	for i := range all {
		u := &all[i]
		for j := range u.Endpoints {
			e := &u.Endpoints[j]
			p.Add("<tr><td>{}</td><td>{}</td><td>{} ({})</td>\n<td>", u.Name, u.Circuit, e.Address, e.Host)
			if e.Status == "Ready" {
				p.good("Ready")
			} else {
				p.bad(e.Status)
				p.Add(" {}", e.HealthCheck)
			}
			p.Add("</td>\n"+`<td class="number">{}</td><td class="number">{}</td></tr>`+"\n", e.Connections, e.RequestsInFlight)
		}
		for _, n := range u.UnresolvedNames {
			p.Add(`<tr><td>{}</td><td></td><td>{}</td><td colspan="3">`, u.Name, n.Host)
			p.bad(n.Message)
			p.Add("</td></tr>\n")
		}
	}
	p.Add("</table>\n\n")
	p.varyingReads(all)
}

// varyingReads shows the resources whose objects get no ETags. It is empty if there are none.
func (p *page) varyingReads(all []Upstream) {
	isBegun := false
	for i := range all {
		for _, r := range all[i].VaryingReads() {
			if !isBegun {
				p.Add("<h2>Resources without ETags</h2>\n<table>\n<tr><th>Resource</th><th>Upstream</th><th>Because</th></tr>\n")
				isBegun = true
			}
			p.Add("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", r, all[i].Name, Varying)
		}
	}
	if isBegun {
		p.Add("</table>\n\n")
	}
}

func (p *page) states(states []State, certificates []Certificate) {
	if len(states) > 0 {
		p.Add("<h2>State that policies read</h2>\n<table><tr><th>Path</th><th>Age</th></tr>\n")
		for _, s := range states {
			p.Add("<tr><td>{}</td><td>{}</td></tr>\n", s.Path, since(s.AgeSeconds))
		}
		p.Add("</table>")
	}
	p.Add("\n")
	if len(certificates) > 0 {
		p.Add("<h2>Certificates</h2>\n<table><tr><th>Certificate</th><th>Expires</th></tr>\n")
		for _, c := range certificates {
			p.Add("<tr><td>{}</td><td>{}</td></tr>\n", c.Name, at(c.ExpireTime))
		}
		p.Add("</table>")
	}
	p.Add("\n")
}
