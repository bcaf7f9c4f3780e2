package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/admission-gateway/gateway/internal/backend"
	"github.com/admission-gateway/gateway/internal/handover"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/source"
)

func newBackend() *cobra.Command {
	var listen string
	var paths []string
	cmd := &cobra.Command{
		Use:   "backend",
		Short: "Serve an in-memory JSON API to try the gateway with",
		Long: `Serve a plain JSON API that keeps its objects in memory, to stand behind a gateway in trials and tests.

Every path is a collection or an item of one: /v2/orders and /v2/orders/o1, or in Kubernetes' form
/apis/example.com/v1/namespaces/team-a/widgets and …/widgets/w1. A collection takes POST (the name is metadata.name,
name or id), GET, and GET with ?watch=true for a stream of changes; an item takes GET, PUT and DELETE, with ETag,
If-Match and If-None-Match. The API stores what it gets and adds nothing to it. It keeps at most 100,000 objects; the
oldest make room for new ones.

With --policies the files say which paths are collections and items, whatever their shape, and where the name of an object
is; a new object without a name gets one, PATCH works, and operations that are no verbs of resources answer with the body
that they got. By an OpenAPI document the status codes are the declared ones, and these operations answer with an example
of the document or with what the schema of the answer requires.`,
		Example: `  gateway backend --listen 127.0.0.1:9000
  curl -d '{"id":"o1"}' http://127.0.0.1:9000/v2/orders`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := listenOn(new(handover.Claims), listen, "--listen")
			if err != nil {
				return err
			}
			stop, ignore := stopSignals()
			defer ignore()
			described, successes, err := described(paths)
			if err != nil {
				return err
			}
			server := backend.New(backend.Options{EvictOldest: true, Described: described,
				Successes: func() []resource.Success { return successes }})
			served := make(chan error, 1)
			go func() { served <- server.Serve(l) }()
			cmd.Printf("The in-memory API serves http://%s\n", l.Addr())
			select {
			case err := <-served:
				return err
			case <-stop:
			}
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			return server.Shutdown(ctx)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:9000", "serve on `ADDR`, a host and a port")
	cmd.Flags().StringArrayVar(&paths, "policies", nil,
		"serve the resources that the policy files in `PATH` describe; may be repeated")
	return cmd
}

// described returns how policy files read requests to a plain API, and how their documents answer them; nil if there
// are no files.
func described(paths []string) (func() []resource.Resolver, []resource.Success, error) {
	if len(paths) == 0 {
		return nil, nil, nil
	}
	c := policies.CompileWithPlans(source.Read(paths, &source.Progress{}))
	if c.Set == nil {
		return nil, nil, refusedPolicies(lines(c.Found))
	}
	everywhere := func(string) bool { return true }
	all := []resource.Resolver{resource.NewPlain(c.Set.Registry(), c.Set.MatchedResources(),
		resource.View{LeadsTo: everywhere, Reaches: everywhere})}
	return func() []resource.Resolver { return all }, c.Set.Successes(), nil
}
