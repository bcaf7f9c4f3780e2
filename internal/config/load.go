package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/admission-gateway/gateway/internal/manifest"
)

// Load reads the configuration file, if there is one, and lays the flags over it. An error is
// Errors; an error in the file is "FILE:LINE: FIELD.PATH: MESSAGE", and an error in a flag begins
// with the flag's name.
func Load(file string, flags Flags) (*Configuration, error) {
	c, _, err := compose(file, flags)
	if err != nil {
		return nil, err
	}
	return c, c.finish()
}

// compose is Load without what follows from the whole. The object is that of the file; nil if there is none.
func compose(file string, flags Flags) (*Configuration, *manifest.Object, error) {
	c := Default()
	var errs Errors
	var o *manifest.Object
	if file != "" {
		c, o, errs = read(file)
	}
	errs = append(errs, flags.apply(c)...)
	if w := c.Kubernetes.Watch; w != nil && len(errs) == 0 {
		if err := w.reach(flags.Pod); err != nil {
			errs = append(errs, at(o, "kubernetes.watch.kubeconfig", "%s", err))
		}
	}
	if o != nil {
		v := &validator{object: o}
		v.reviewers(c)
		v.dryRuns(c)
		errs = append(errs, v.errs...)
	}
	if len(errs) == 0 {
		errs = c.complete(file, o)
	}
	if len(errs) > 0 {
		return nil, nil, errs
	}
	return c, o, nil
}

// Places returns where the file has the value at a path; of a file that cannot be read the file as a whole.
func Places(file string) func(path string) manifest.Position {
	objects, _ := manifest.ReadFile(file)
	if len(objects) != 1 {
		return func(path string) manifest.Position { return manifest.Position{File: file, Path: path} }
	}
	return objects[0].Where
}

// read reads a file on its own. The object is nil if it cannot be decoded.
func read(file string) (*Configuration, *manifest.Object, Errors) {
	c := Default()
	var errs Errors
	objects, readErrs := manifest.ReadFile(file)
	for _, err := range readErrs {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return c, nil, errs
	}
	if len(objects) != 1 {
		return c, nil,
			Errors{&manifest.Error{File: file, Msg: fmt.Sprintf("must have one object, not %d", len(objects))}}
	}
	o := objects[0]
	if o.APIVersion != APIVersion {
		return c, nil, Errors{at(o, "apiVersion", "must be '%s', not '%s'", APIVersion, o.APIVersion)}
	}
	if o.Kind != Kind {
		return c, nil, Errors{at(o, "kind", "must be '%s', not '%s'", Kind, o.Kind)}
	}
	for _, err := range c.decode(o) {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return c, nil, errs
	}
	v := &validator{object: o}
	v.configuration(c)
	beside(file, c.Policies.files()...)
	for _, l := range c.AllListeners() {
		beside(file, l.TLS.files()...)
	}
	beside(file, c.Identity.files()...)
	beside(file, append(c.Admin.TLS.files(), &c.Admin.TokenFile)...)
	beside(file, c.Redis.files()...)
	beside(file, c.Telemetry.Audit.files()...)
	beside(file, c.Telemetry.DecisionLogs.files()...)
	if w := c.Kubernetes.Watch; w != nil {
		beside(file, &w.Kubeconfig)
	}
	for i := range c.Bundles {
		beside(file, c.Bundles[i].files()...)
	}
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		beside(file, &u.TokenFile, &u.Kubeconfig)
		beside(file, u.TLS.files()...)
		if u.Kubeconfig != "" && len(v.errs) == 0 {
			if err := u.readKubeconfig(); err != nil {
				v.check(fmt.Sprintf("upstreams[%d].kubeconfig", i), err.Error())
			} else if u.Credentials == ImpersonateCredentials && u.clientConfig.Impersonate.UserName != "" {
				v.check(fmt.Sprintf("upstreams[%d].credentials", i), "must not be 'Impersonate' where the user of the kubeconfig itself asks to act `as` another")
			}
		}
	}
	return c, o, v.errs
}

// beside makes the names of files that a configuration file has relative to its directory.
func beside(file string, names ...*string) {
	for _, name := range names {
		if *name != "" && !filepath.IsAbs(*name) {
			*name = filepath.Join(filepath.Dir(file), *name)
		}
	}
}

// decode lays the file's values over the defaults, which the items of lists have too.
func (c *Configuration) decode(o *manifest.Object) []*manifest.Error {
	d := manifest.Decoder{Inside: insidePolicies}
	errs := d.Decode(o, &struct {
		TypeMeta       `json:",inline"`
		*Configuration `json:",inline"`
	}{Configuration: c})
	for _, e := range errs {
		switch e.Path {
		case "halfClose", "hosts", "hsts", "proxyProtocol", "redirectToHTTPS":
			// which an author may look for beside `listen` and `tls`
			e.Msg = "unknown field: it belongs to one of the `listeners`, which may take the place of `listen` and `tls`"
		}
	}
	if len(errs) > 0 {
		return errs
	}
	if t := c.Telemetry.Tracing; t != nil {
		*t = defaultTracing()
		errs = append(errs, d.DecodeAt(o, "telemetry.tracing", t)...)
	}
	if p := c.Telemetry.Metrics.Push; p != nil {
		*p = defaultPush()
		errs = append(errs, d.DecodeAt(o, "telemetry.metrics.push", p)...)
	}
	if w := c.Kubernetes.Watch; w != nil {
		*w = defaultClusterWatch()
		errs = append(errs, d.DecodeAt(o, "kubernetes.watch", w)...)
	}
	if c.Redis != nil {
		*c.Redis = defaultRedis()
		errs = append(errs, d.DecodeAt(o, "redis", c.Redis)...)
	}
	if a := c.Telemetry.Audit; a != nil {
		*a = defaultAudit()
		errs = append(errs, d.DecodeAt(o, "telemetry.audit", a)...)
		if a.Log != nil {
			*a.Log = defaultAuditLog()
			errs = append(errs, d.DecodeAt(o, "telemetry.audit.log", a.Log)...)
		}
		if a.Webhook != nil {
			*a.Webhook = defaultAuditWebhook()
			errs = append(errs, d.DecodeAt(o, "telemetry.audit.webhook", a.Webhook)...)
		}
	}
	if l := c.Telemetry.DecisionLogs; l != nil {
		*l = defaultDecisionLogs()
		errs = append(errs, d.DecodeAt(o, "telemetry.decisionLogs", l)...)
		if l.Log != nil {
			*l.Log = defaultAuditLog()
			errs = append(errs, d.DecodeAt(o, "telemetry.decisionLogs.log", l.Log)...)
		}
		if l.Service != nil {
			*l.Service = defaultDecisionService()
			errs = append(errs, d.DecodeAt(o, "telemetry.decisionLogs.service", l.Service)...)
		}
	}
	for i := range c.Upstreams {
		c.Upstreams[i] = defaultUpstream()
		errs = append(errs, d.DecodeAt(o, fmt.Sprintf("upstreams[%d]", i), &c.Upstreams[i])...)
		c.Upstreams[i].assumeDialect()
	}
	for i := range c.Bundles {
		c.Bundles[i] = defaultBundle()
		errs = append(errs, d.DecodeAt(o, fmt.Sprintf("bundles[%d]", i), &c.Bundles[i])...)
	}
	if e := c.Telemetry.Explanations; e != nil {
		*e = *defaultExplanations()
		errs = append(errs, d.DecodeAt(o, "telemetry.explanations", e)...)
	}
	if c.Identity != nil {
		c.Identity = defaultIdentity()
		errs = append(errs, d.DecodeAt(o, "identity", c.Identity)...)
	}
	for i := range c.Listeners {
		l, path := &c.Listeners[i], fmt.Sprintf("listeners[%d]", i)
		if l.RedirectToHTTPS != nil {
			*l.RedirectToHTTPS = defaultRedirect()
			errs = append(errs, d.DecodeAt(o, path+".redirectToHTTPS", l.RedirectToHTTPS)...)
		}
		if l.HSTS != nil {
			*l.HSTS = defaultHSTS()
			errs = append(errs, d.DecodeAt(o, path+".hsts", l.HSTS)...)
		}
	}
	for i := range c.Routes {
		c.Routes[i] = Route{PathPrefix: "/"}
		errs = append(errs, d.DecodeAt(o, fmt.Sprintf("routes[%d]", i), &c.Routes[i])...)
		if c.Routes[i].CORS != nil {
			*c.Routes[i].CORS = defaultCORS()
			errs = append(errs, d.DecodeAt(o, fmt.Sprintf("routes[%d].cors", i), c.Routes[i].CORS)...)
		}
	}
	return errs
}

// complete adds what follows from the whole: one upstream needs no route to be named.
func (c *Configuration) complete(file string, o *manifest.Object) Errors {
	if len(c.Upstreams) == 0 && c.Kubernetes.Watch == nil {
		if file == "" {
			return Errors{errors.New("--upstream: Required value: name the backend's URL, a file with --kubeconfig, or one with --config")}
		}
		return Errors{&manifest.Error{File: file, Path: "upstreams",
			Msg: "Required value: name at least one backend here or with --upstream"}}
	}
	if len(c.Routes) == 0 && len(c.Upstreams) > 0 {
		if len(c.Upstreams) > 1 {
			return Errors{&manifest.Error{File: file, Path: "routes",
				Msg: "Required value: must say which requests go to which of the `upstreams`"}}
		}
		c.Routes = []Route{{PathPrefix: "/", Upstream: c.Upstreams[0].Name}}
	}
	for _, l := range c.AllListeners() {
		if l.Listen != c.Admin.Listen || strings.HasSuffix(l.Listen, ":0") { // port 0 is another one each time
			continue
		}
		const same = "the address '%s' must not be both the public and the admin listener's"
		if o == nil {
			return Errors{fmt.Errorf(same, l.Listen)}
		}
		return Errors{at(o, "admin.listen", same, l.Listen)}
	}
	return nil
}
