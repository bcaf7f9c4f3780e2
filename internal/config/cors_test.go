package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestCORS(t *testing.T) {
	const before = head + "upstreams: [{name: a, endpoints: [http://a:1]}]\nroutes:\n- upstream: a\n  cors:\n"
	c, problem, _ := load(t, before+"    allowOrigins: ['https://shop.example.com', 'http://*.example.net:8080']\n",
		Flags{})
	if problem != "" {
		t.Fatal(problem)
	}
	want := &CORS{
		AllowOrigins: []string{"https://shop.example.com", "http://*.example.net:8080"},
		AllowMethods: []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, AllowHeaders: []string{"*"},
		MaxAgeSeconds: 600,
	}
	if got := c.Routes[0].CORS; !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
	for lines, want := range map[string]string{
		"{}":                                                                         "routes[0].cors.allowOrigins: Required value: must have at least one origin, or '*'",
		"{allowOrigins: [a.b]}":                                                      "routes[0].cors.allowOrigins[0]: must be an origin as browsers write it, such as 'https://shop.example.com' or 'https://*.example.com' in lower case and without the port that the scheme has anyway, or '*', not 'a.b'",
		"{allowOrigins: ['https://a.b/']}":                                           "not 'https://a.b/'",
		"{allowOrigins: ['https://A.b']}":                                            "not 'https://A.b'",
		"{allowOrigins: ['https://a.*.b']}":                                          "not 'https://a.*.b'",
		"{allowOrigins: ['https://*']}":                                              "not 'https://*'",
		"{allowOrigins: ['https://a.b:443']}":                                        "not 'https://a.b:443'",
		"{allowOrigins: ['https://a`.b']}":                                           "not 'https://a`.b'",
		"{allowOrigins: ['https://*.[::1]']}":                                        "not 'https://*.[::1]'",
		"{allowOrigins: ['https://*.127.0.0.1']}":                                    "not 'https://*.127.0.0.1'",
		"{allowOrigins: ['https://a..b']}":                                           "not 'https://a..b'",
		"{allowOrigins: ['https://a.b:080']}":                                        "not 'https://a.b:080'",
		"{allowOrigins: ['null']}":                                                   "not 'null'",
		"{allowOrigins: ['*'], allowCredentials: true}":                              "routes[0].cors.allowOrigins[0]: must not be '*' where `allowCredentials` is true: name the origins",
		"{allowOrigins: ['*'], allowMethods: ['GET, PUT']}":                          "routes[0].cors.allowMethods[0]: must be a name without blanks and commas, not 'GET, PUT'",
		"{allowOrigins: ['https://a', 'https://a']}":                                 "routes[0].cors.allowOrigins[1]: must be unique; 'https://a' is listed twice",
		"{allowOrigins: ['https://a', '*']}":                                         "routes[0].cors.allowOrigins[0]: must not be set beside '*', which is 'https://a' too",
		"{allowOrigins: ['*'], allowMethods: [patch]}":                               "routes[0].cors.allowMethods[0]: must be in capital letters, 'PATCH', not 'patch': browsers ask for methods so",
		"{allowOrigins: ['*'], allowMethods: [DELTE]}":                               "routes[0].cors.allowMethods[0]: must be a method, not 'DELTE'; did you mean `DELETE`?",
		"{allowOrigins: ['*'], allowHeaders: [a, a]}":                                "routes[0].cors.allowHeaders[1]: must be unique; 'a' is listed twice",
		"{allowOrigins: ['*'], maxAgeSeconds: 86401}":                                "routes[0].cors.maxAgeSeconds: must be between 0 and 86400, inclusive, not 86401",
		"{allowOrigins: ['http://a'], allowCredentials: true, exposeHeaders: ['*']}": "routes[0].cors.exposeHeaders[0]: must not be '*' where `allowCredentials` is true: browsers take it for a name then",
	} {
		_, problem, _ := load(t, strings.TrimSuffix(before, "\n")+" "+lines+"\n", Flags{})
		if !strings.Contains(problem, want) {
			t.Errorf("%s: %q, want %q", lines, problem, want)
		}
	}
}
