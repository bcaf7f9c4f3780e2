package config

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

var (
	dialects      = []Dialect{Kubernetes, Plain}
	httpProtocols = []HTTPProtocol{HTTP1Protocol, HTTP2Protocol, AutoProtocol}
	underscores   = []UnderscoreHeaders{Refuse, Drop, Pass}
	forwarded     = []ForwardedHeader{XForwardedFor, Forwarded}
)

func (v *validator) configuration(c *Configuration) {
	v.listeners(c)
	between(v, "http2.maxConcurrentStreams", c.HTTP2.MaxConcurrentStreams, 1, 1<<14)
	v.check("admin.listen", addressProblem(c.Admin.Listen))
	for i, host := range c.Admin.Hosts {
		problem := hostProblem(host)
		if host == "" {
			problem = "must name a host"
		}
		v.check(fmt.Sprintf("admin.hosts[%d]", i), problem)
	}
	v.listenerTLS("admin.tls", c.Admin.TLS)
	for i := range c.Upstreams {
		v.upstream(fmt.Sprintf("upstreams[%d]", i), &c.Upstreams[i])
		for j := range i {
			if c.Upstreams[j].Name == c.Upstreams[i].Name {
				v.check(fmt.Sprintf("upstreams[%d].name", i),
					fmt.Sprintf("must be unique; `upstreams[%d]` is '%s' too", j, c.Upstreams[j].Name))
				break
			}
		}
	}
	v.routes(c)
	v.identity(c)
	v.policies(&c.Policies, c.Routes)
	v.limits(&c.Limits)
	t := &c.Timeouts
	v.within("timeouts.headerDeadlineSeconds", t.HeaderDeadlineSeconds, 1, maxSeconds)
	v.within("timeouts.bodyDeadlineSeconds", t.BodyDeadlineSeconds, 1, maxSeconds)
	v.within("timeouts.idleTimeoutSeconds", t.IdleTimeoutSeconds, 1, maxSeconds)
	v.within("timeouts.writeTimeoutSeconds", t.WriteTimeoutSeconds, 1, maxSeconds)
	v.within("timeouts.upgradeIdleTimeoutSeconds", t.UpgradeIdleTimeoutSeconds, 0, maxSeconds)
	v.bundles(c.Bundles)
	v.watch("kubernetes.watch", c.Kubernetes.Watch)
	v.redis("redis", c.Redis)
	between(v, "replicas", c.Replicas, 1, 1<<16)
	v.telemetry("telemetry", &c.Telemetry)
	checkExplanations(v, "telemetry.explanations", c.Telemetry.Explanations, c.Identity)
	v.decisionLogs("telemetry.decisionLogs", c.Telemetry.DecisionLogs, c.Bundles)
	v.within("drainSeconds", c.DrainSeconds, 0, maxSeconds)
	v.within("shutdownDeadlineSeconds", c.ShutdownDeadlineSeconds, 0, maxSeconds)
	v.within("upgradeDrainSeconds", c.UpgradeDrainSeconds, 0, maxSeconds)
	if !slices.Contains(admitOns, c.AdmitOn) {
		v.check("admitOn", notOneOf(string(c.AdmitOn), admitOns))
	}
	if !slices.Contains(underscores, c.UnderscoreHeaders) {
		v.check("underscoreHeaders", notOneOf(string(c.UnderscoreHeaders), underscores))
	}
	if !slices.Contains(forwarded, c.ForwardedHeader) {
		v.check("forwardedHeader", notOneOf(string(c.ForwardedHeader), forwarded))
	} else if c.ForwardedHeader == Forwarded && len(c.TrustedProxies) == 0 {
		v.check("forwardedHeader", "must not be 'Forwarded' without `trustedProxies`: no peer would be believed")
	}
}

func (v *validator) upstream(path string, u *UpstreamSpec) {
	if u.Name == "" {
		v.check(path+".name", "Required value")
	} else if problems := validation.IsDNS1123Label(u.Name); len(problems) > 0 {
		v.check(path+".name", fmt.Sprintf("must be at most 63 lower-case letters, digits and '-', with a letter or digit at both ends, not '%s'", u.Name))
	}
	if len(u.Endpoints) == 0 && u.Kubeconfig == "" {
		v.check(path+".endpoints", "Required value: must have at least one URL")
	}
	for i, e := range u.Endpoints {
		at := fmt.Sprintf("%s.endpoints[%d]", path, i)
		problem := endpointProblem(e)
		switch {
		case problem != "":
			v.check(at, problem)
		case scheme(e) != scheme(u.Endpoints[0]) && endpointProblem(u.Endpoints[0]) == "":
			v.check(at, fmt.Sprintf("must have the scheme '%s' of `%s.endpoints[0]`", scheme(u.Endpoints[0]), path))
		case slices.Contains(u.Endpoints[:i], e):
			v.check(at, fmt.Sprintf("must be unique; '%s' is listed twice", e))
		}
	}
	if !slices.Contains(dialects, u.Dialect) {
		v.check(path+".dialect", notOneOf(string(u.Dialect), dialects))
	}
	if u.Protocol != "" && !slices.Contains(httpProtocols, u.Protocol) {
		v.check(path+".protocol", notOneOf(string(u.Protocol), httpProtocols))
	}
	v.basePaths(path, u)
	v.serviceAccount(path, u)
	v.credentials(path, u)
	v.upgrades(path, u)
	v.undescribed(path+".undescribed", u.Undescribed, u)
	v.abandonedWrites(path, u.AbandonedWrites)
	v.errorFormat(path, u.ErrorFormat, u.ErrorTemplate, u)
	v.events(path+".events", u)
	v.within(path+".connectTimeoutSeconds", u.ConnectTimeoutSeconds, 1, maxSeconds)
	v.within(path+".responseTimeoutSeconds", u.ResponseTimeoutSeconds, 1, maxSeconds)
	v.within(path+".bodyTimeoutSeconds", u.BodyTimeoutSeconds, 1, maxSeconds)
	v.within(path+".streamTimeoutSeconds", u.StreamTimeoutSeconds, 0, maxSeconds)
	v.within(path+".idleTimeoutSeconds", u.IdleTimeoutSeconds, 1, maxSeconds)
	v.within(path+".queueTimeoutSeconds", u.QueueTimeoutSeconds, 1, maxSeconds)
	between(v, path+".maxConnections", u.MaxConnections, 1, 1<<20)
	v.balance(path, &u.Balance)
}

func (v *validator) routes(c *Configuration) {
	type place struct{ host, pathPrefix string }
	places, names := make(map[place]int, len(c.Routes)), map[string]int{} // the first route that has it
	for i, r := range c.Routes {
		path := fmt.Sprintf("routes[%d]", i)
		v.routeName(path+".name", r.Name, names, i)
		v.check(path+".host", hostProblem(r.Host))
		v.check(path+".pathPrefix", pathPrefixProblem(r.PathPrefix))
		v.rewrites(path, &r)
		v.cors(path+".cors", r.CORS)
		between(v, path+".bodyBytes", r.BodyBytes, 0, 1<<30)
		if most := c.Limits.BodiesInFlightBytes; r.BodyBytes > most && most >= 1 && r.BodyBytes <= 1<<30 {
			v.check(path+".bodyBytes",
				fmt.Sprintf("must be less than or equal to `limits.bodiesInFlightBytes`, which is %d", most))
		}
		v.within(path+".responseTimeoutSeconds", r.ResponseTimeoutSeconds, 0, maxSeconds)
		v.within(path+".bodyTimeoutSeconds", r.BodyTimeoutSeconds, 0, maxSeconds)
		switch {
		case r.Upstream == "":
			v.check(path+".upstream", "Required value")
		case !slices.ContainsFunc(c.Upstreams, func(u UpstreamSpec) bool { return u.Name == r.Upstream }):
			v.check(path+".upstream", fmt.Sprintf("must be the name of one of the `upstreams`, not '%s'", r.Upstream))
		}
		v.undescribed(path+".undescribed", r.Undescribed, c.upstreamOf(&r))
		v.abandonedWrites(path, r.AbandonedWrites)
		v.errorFormat(path, r.ErrorFormat, r.ErrorTemplate, c.upstreamOf(&r))
		at := place{r.Host, r.PathPrefix}
		if first, isTaken := places[at]; isTaken {
			v.check(path, fmt.Sprintf("must not have the host and path prefix of `routes[%d]`", first))
		} else {
			places[at] = i
		}
	}
}

// routeName checks the name of a route, by which the scopes of policy files name it.
func (v *validator) routeName(path, name string, names map[string]int, i int) {
	if name == "" {
		return
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		v.check(path, fmt.Sprintf("must be at most 63 lower-case letters, digits and '-', with a letter or digit at both ends, not '%s'", name))
	}
	if first, isTaken := names[name]; isTaken {
		v.check(path, fmt.Sprintf("must be unique; `routes[%d]` is '%s' too", first, name))
		return
	}
	names[name] = i
}

func (v *validator) limits(l *Limits) {
	const mebi = 1 << 20
	between(v, "limits.bodyBytes", l.BodyBytes, 1, 1<<30)
	between(v, "limits.bodiesInFlightBytes", l.BodiesInFlightBytes, 0, 1<<40)
	between(v, "limits.heavyRequests", l.HeavyRequests, 0, 10_000)
	if l.BodyBytes > l.BodiesInFlightBytes && l.BodyBytes <= 1<<30 && l.BodiesInFlightBytes >= 1 {
		v.check("limits.bodiesInFlightBytes",
			fmt.Sprintf("must be greater than or equal to `limits.bodyBytes`, which is %d", l.BodyBytes))
	}
	between(v, "limits.headerBytes", l.HeaderBytes, 1<<10, mebi)
	between(v, "limits.uriBytes", l.URIBytes, 128, mebi)
	between(v, "limits.headers", l.Headers, 8, 10_000)
	between(v, "limits.jsonDepth", l.JSONDepth, 1, 10_000)
	between(v, "limits.jsonNodes", l.JSONNodes, 1, 1<<30)
	between(v, "limits.connections", l.Connections, 1, mebi)
	between(v, "limits.drainBytesPerSecond", l.DrainBytesPerSecond, 0, 1<<30)
}
