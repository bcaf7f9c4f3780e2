package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
)

// The rows of the table, the requests and the goals: what is measured is listed here alone.

// targets returns the rows of the table in order. A new row is one more entry.
func targets() []Target {
	return append([]Target{
		{
			Name: "direct", Title: "backend, direct", BesideLoad: true, Check: checkPassThrough,
			Command: func(m *Machine, listen string) ([]string, error) { return m.peer("backend", listen), nil },
		},
		{
			Name: nginxTarget, Title: "nginx, pass-through", Check: checkPassThrough, Packages: []string{"nginx"},
			Command: func(m *Machine, listen string) ([]string, error) {
				config, err := m.render("nginx.conf", listen)
				return []string{"nginx", "-p", m.Dir, "-c", config, "-e", filepath.Join(m.Dir, "nginx.log")}, err
			},
		},
		{
			Name: "haproxy", Title: "haproxy, pass-through", Check: checkPassThrough, Packages: []string{"haproxy"},
			Command: func(m *Machine, listen string) ([]string, error) {
				config, err := m.render("haproxy.cfg", listen)
				return []string{"haproxy", "-db", "-f", config}, err
			},
		},
		{
			Name: fasthttpTarget, Title: "minimal fasthttp proxy", Check: checkPassThrough,
			Command: func(m *Machine, listen string) ([]string, error) { return m.peer("fasthttp", listen), nil },
		},
		{
			// What the row for one object waits for, without all else that the gateway does for a PATCH.
			Name: turnsTarget, Title: "minimal fasthttp proxy, one exchange at a time", Check: checkPassThrough,
			Command: func(m *Machine, listen string) ([]string, error) { return m.peer("fasthttp-turns", listen), nil },
		},
		{
			Name: netTarget, Title: "net/http ReverseProxy", Check: checkPassThrough,
			Command: func(m *Machine, listen string) ([]string, error) { return m.peer("net-http", listen), nil },
		},
		{
			Name: gatewayTarget, Title: "**gateway, no policies**", OfGateway: true, Check: checkPassThrough,
			Command: func(m *Machine, listen string) ([]string, error) { return m.gateway(listen) },
		},
		{
			Name: undescribedTarget, Title: "**gateway, undescribed beside a described resource**", OfGateway: true,
			Check: checkPassThrough,
			Command: func(m *Machine, listen string) ([]string, error) {
				return m.gateway(listen, "--policies", filepath.Join(m.Root, "bench", "undescribed"))
			},
		},
		{
			Name: validatedTarget, Title: "**gateway, validated PATCH**", OfGateway: true, Check: checkValidated,
			Command: func(m *Machine, listen string) ([]string, error) {
				return m.gateway(listen, "--policies", filepath.Join(m.Root, "bench", "validated"))
			},
		},
		{
			Name: etagsTarget, Title: "**gateway, ETags of its own**", OfGateway: true, Check: checkETags,
			Command: func(m *Machine, listen string) ([]string, error) {
				return m.gateway(listen, "--policies", filepath.Join(m.Root, "bench", "etags"))
			},
		},
		{
			Name: documentedTarget, Title: "**gateway, POST of an OpenAPI document**", OfGateway: true,
			Check: checkDocumented,
			Command: func(m *Machine, listen string) ([]string, error) {
				return m.gateway(listen, "--policies", filepath.Join(m.Root, "bench", "documented"))
			},
		},
		{
			Name: admissionTarget, Title: "**gateway, full admission**", OfGateway: true, Check: checkAdmission,
			Command: func(m *Machine, listen string) ([]string, error) {
				return m.gateway(listen, "--policies", filepath.Join(m.Root, "bench", "policies"))
			},
		},
		{
			Name: emulationTarget, Title: "**gateway, emulation**", OfGateway: true, Check: checkEmulation,
			Command: func(m *Machine, listen string) ([]string, error) {
				return m.gateway(listen, "--policies", filepath.Join(m.Root, "bench", "emulation"))
			},
		},
		{
			// A gateway of its own: what it finds out of the backend's ETags holds for all objects of a resource.
			Name: contestedTarget, Title: "**gateway, emulation**", OfGateway: true, Check: checkContested,
			Command: func(m *Machine, listen string) ([]string, error) {
				return m.gateway(listen, "--policies", filepath.Join(m.Root, "bench", "emulation"))
			},
		},
		{
			Name: identityTarget, Title: "**gateway, identity by JWT and a limit for each user**", OfGateway: true,
			KnowsUsers: true, Check: checkPassThrough,
			Command: func(m *Machine, listen string) ([]string, error) {
				config, err := m.identityConfig()
				if err != nil {
					return nil, err
				}
				return m.gateway(listen, "--config", config, "--policies", filepath.Join(m.Root, "bench", "limits"))
			},
		},
		{
			Name: secureDirectTarget, Title: "backend by TLS, direct", BesideLoad: true, Secure: true,
			Check:   func(address string) error { return checkForms("https://" + address) },
			Command: func(m *Machine, listen string) ([]string, error) { return m.peer("backend-tls", listen), nil },
		},
		{
			Name: secureNginxTarget, Title: "nginx, pass-through",
			Check: func(address string) error { return checkForms("http://" + address) }, Packages: []string{"nginx"},
			Command: func(m *Machine, listen string) ([]string, error) {
				config, err := m.render("nginx-tls.conf", listen)
				return []string{"nginx", "-p", m.Dir, "-c", config, "-e", filepath.Join(m.Dir, "nginx-tls.log")}, err
			},
		},
		{
			Name: secureGatewayTarget, Title: "**gateway, no policies**", OfGateway: true,
			Check: func(address string) error { return checkForms("http://" + address) },
			Command: func(m *Machine, listen string) ([]string, error) {
				return m.configured(listen, secureGatewayTarget, map[string]any{"upstreams": []any{map[string]any{
					"name": "backend", "endpoints": []string{"https://" + m.SecureBackend}, "dialect": "Kubernetes",
					"tls": map[string]any{"insecureSkipTLSVerify": true},
				}}})
			},
		},
	}, slices.Concat(policiesRows(), http2Rows(), regoRows(), constraintRows(), routesRows(),
		featureRows(features()))...)
}

func targetNames() []string {
	var names []string
	for _, t := range targets() {
		names = append(names, t.Name)
	}
	return names
}

// chosen returns the targets with the given names, in the order of the table; all without names.
func chosen(names []string) ([]Target, error) {
	all := targets()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(t Target) bool { return t.Name == name }) {
			return nil, fmt.Errorf("no target is named %q", name)
		}
	}
	if len(names) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(all, func(t Target) bool { return !slices.Contains(names, t.Name) }), nil
}

// loads returns what is measured, in the order of the table.
func loads() []Load {
	const one = collection + "/" + objectName
	return append([]Load{
		{Name: postLoad, Method: http.MethodPost, Path: collection, Body: workloadJSON,
			Only: without(slices.Concat(secureTargets, http2Targets, regoTargets, constraintTargets, routesTargets,
				policiesTargets, []string{emulationTarget, contestedTarget, turnsTarget, identityTarget,
					validatedTarget, etagsTarget})...)},
		{Name: getLoad, Method: http.MethodGet, Path: one,
			Only: without(slices.Concat(secureTargets, http2Targets, regoTargets, constraintTargets, routesTargets,
				policiesTargets, featureNames(features()),
				[]string{emulationTarget, contestedTarget, turnsTarget, identityTarget, documentedTarget})...)},
		{Name: userLoad, Method: http.MethodGet, Path: one, AsUser: true,
			Only: []string{gatewayTarget, identityTarget}},
		{Name: putLoad, Method: http.MethodPut, Path: one, Body: changedWorkload(), IsSpread: true,
			Only: []string{gatewayTarget, emulationTarget}},
		{Name: patchLoad, Method: http.MethodPatch, Path: one, ContentType: mergePatch, Body: []byte(scaling),
			IsSpread: true,
			Only:     []string{gatewayTarget, validatedTarget, emulationTarget}},
		{Name: onePatchLoad, Method: http.MethodPatch, Path: collection + "/" + contestedName, ContentType: mergePatch,
			Body: []byte(scaling), IsChanging: true, Only: []string{contestedTarget}},
		{Name: turnsLoad, Method: http.MethodPut, Path: one, Body: changedWorkload(), Only: []string{turnsTarget}},
	}, slices.Concat(largeLoads(), latencyLoads(), policiesLoads(), http2Loads(), regoLoads(), constraintLoads(),
		routesLoads(), secureLoads())...)
}

// without are the names of all targets but some.
func without(targets ...string) []string {
	return slices.DeleteFunc(targetNames(), func(name string) bool { return slices.Contains(targets, name) })
}

func loadNames(loads []Load) []string {
	var names []string
	for _, l := range loads {
		names = append(names, l.Name)
	}
	return names
}

func chosenLoads(names []string) ([]Load, error) {
	all := loads()
	for _, name := range names {
		if !slices.Contains(loadNames(all), name) {
			return nil, fmt.Errorf("no load is named %q", name)
		}
	}
	if len(names) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(all, func(l Load) bool { return !slices.Contains(names, l.Name) }), nil
}

// goals returns the ratios that the gateway has to keep.
func goals() []Goal {
	return append([]Goal{
		{Load: "GET", Target: gatewayTarget, Reference: fasthttpTarget, AtMost: 1},
		// defaults are filled in on reads too
		{Load: "GET", Target: admissionTarget, Reference: fasthttpTarget, AtMost: 1.15},
		{Load: postLoad, Target: gatewayTarget, Reference: fasthttpTarget, AtMost: 1},
		{Load: postLoad, Target: admissionTarget, Reference: nginxTarget, AtMost: 1.5},
		// What is emulated takes two requests to the backend, and little more time than two requests that pass.
		{Load: putLoad, Target: emulationTarget, Reference: gatewayTarget, AtMost: 1.3, Of: []string{"GET", putLoad}},
		{Load: userLoad, Target: identityTarget, Reference: gatewayTarget, AtMost: 1.1},
		{Load: patchLoad, Target: emulationTarget, Reference: gatewayTarget, AtMost: 1.3, Of: []string{"GET", putLoad}},
		{Load: onePatchLoad, Target: contestedTarget, Reference: gatewayTarget, AtMost: 1.5,
			Of: []string{"GET", putLoad}},
		{Load: patchLoad, Target: validatedTarget, Reference: gatewayTarget, AtMost: 1.15,
			Of: []string{"GET", patchLoad}},
		// The backend's own ETags pass to clients of validatedTarget.
		{Load: "GET", Target: etagsTarget, Reference: validatedTarget, AtMost: 1.15},
		// That files describe other paths costs nothing, beyond what two runs of one program differ by.
		{Load: "GET", Target: undescribedTarget, Reference: gatewayTarget, AtMost: 1.03},
		{Load: postLoad, Target: undescribedTarget, Reference: gatewayTarget, AtMost: 1.03},
		{Load: postLoad, Target: documentedTarget, Reference: undescribedTarget, AtMost: 1.15},
		// The server of OPA's own is asked for the decision alone, and the gateway proxies the request too.
		{Load: regoLoad, Target: regoTarget, Reference: opaTarget, AtMost: 0.1, Of: []string{opaLoad}},
		// Large answers by TLS.
		{Load: listLoad, Target: secureGatewayTarget, Reference: secureNginxTarget, AtMost: 1.3},
		{Load: gzipLoad, Target: secureGatewayTarget, Reference: secureNginxTarget, AtMost: 1.3},
		{Load: protobufLoad, Target: secureGatewayTarget, Reference: secureNginxTarget, AtMost: 1.3},
		// each event opens a watch
		{Load: eventLoad, Target: secureGatewayTarget, Reference: secureNginxTarget, AtMost: 1.1},
	}, slices.Concat(largeGoals(), latencyGoals(), policiesGoals(), http2Goals(), featureGoals())...)
}
