// Package makes has the ways to make a client, for a test.
package makes

import (
	web "net/http"

	"k8s.io/client-go/rest"
)

func all() []any {
	a := &web.Client{}
	b := web.Transport{}
	c := new(web.Client)
	d := web.DefaultTransport.(*web.Transport).Clone()
	e, _ := web.Get("http://127.0.0.1")
	f, _ := rest.HTTPClientFor(nil)
	return []any{a, b, c, d, e, f}
}

type value struct{ client web.Client }

type pointer struct{ client *web.Client }
