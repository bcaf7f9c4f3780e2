package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

// The gateway with one route and with many.
const (
	oneRouteTarget   = "gateway-route"
	manyRoutesTarget = "gateway-many-routes"
	routesLoad       = "POST 1.3 KB by routes"
	manyRoutes       = 10_000
	// maxRoutesMicroseconds is the goal for the CPU time that so many routes take beside one.
	maxRoutesMicroseconds = 1
)

var routesTargets = []string{oneRouteTarget, manyRoutesTarget}

func routesLoads() []Load {
	return []Load{{Name: routesLoad, Method: http.MethodPost, Path: collection, Body: workloadJSON,
		Only: routesTargets}}
}

func routesRows() []Target {
	row := func(name, title string, count int) Target {
		return Target{
			Name: name, Title: "**gateway**, " + title, OfGateway: true, Check: checkPassThrough,
			Command: func(m *Machine, listen string) ([]string, error) {
				file, err := m.writeRoutes(name, count)
				if err != nil {
					return nil, err
				}
				admin, err := freeAddress()
				return []string{m.Gateway, "serve", "--listen", listen, "--admin", admin, "--config", file}, err
			},
		}
	}
	return []Target{row(oneRouteTarget, "1 route", 1), row(manyRoutesTarget, "10,000 routes", manyRoutes)}
}

// writeRoutes writes a configuration with so many routes: the one of the requests, half of the others for hosts of
// their own and half for paths beside its.
func (m *Machine) writeRoutes(name string, count int) (string, error) {
	all := []map[string]any{{"pathPrefix": "/apis", "upstream": "api"}}
	for i := 1; i < count; i++ {
		one := map[string]any{"pathPrefix": fmt.Sprintf("/apis/group%d.example.com", i), "upstream": "api"}
		if i%2 == 0 {
			one["host"] = fmt.Sprintf("h%d.example.com", i)
		}
		all = append(all, one)
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "admission-gateway.io/v1alpha1", "kind": "GatewayConfiguration", "routes": all,
		"upstreams": []any{map[string]any{"name": "api", "endpoints": []string{"http://" + m.Backend},
			"dialect": "Plain"}},
	})
	if err != nil {
		return "", err
	}
	// A folder of its own: what else changes beside a configuration has the gateway read it again.
	dir := filepath.Join(m.Dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(dir, "gateway.yaml")
	return file, os.WriteFile(file, text, 0o644)
}

// manyRoutesMore returns the CPU time in microseconds that many routes take beside one.
func (r *Report) manyRoutesMore() (microseconds float64, ok bool) {
	one, many := r.find(routesLoad, oneRouteTarget), r.find(routesLoad, manyRoutesTarget)
	if len(one) == 0 || len(many) == 0 {
		return 0, false
	}
	return median(many, cpuOf) - median(one, cpuOf), true
}
