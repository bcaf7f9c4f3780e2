package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/admission-gateway/gateway/internal/backend"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/library"
	"github.com/admission-gateway/gateway/policies/source"
	"github.com/admission-gateway/gateway/proxy"
)

func newDemo() *cobra.Command {
	flags := config.Flags{Dialect: string(config.Plain)}
	defaults := config.Default()
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Try the gateway: an API, policies and commands to paste",
		Long: `Run a gateway with an in-memory API behind it, both in this process, and print commands that show what it does.

It serves a Kubernetes-style resource (queues, by a CustomResourceDefinition) and an ordinary API (orders, by an
APIResource). The policy files are put into a directory that is printed: change them and send a request again. Ctrl-C
ends the demo and removes them.`,
		Example: `  gateway demo
  gateway demo --listen 127.0.0.1:18080 --admin 127.0.0.1:18081`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			signals, ignore := serveSignals()
			defer ignore()
			return demo(cmd.OutOrStdout(), cmd.ErrOrStderr(), flags, signals)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&flags.Listen, "listen", defaults.Listen, "serve clients on `ADDR`, a host and a port")
	f.StringVar(&flags.Admin, "admin", defaults.Admin.Listen, "serve health, metrics and the active policies on `ADDR`")
	return cmd
}

// demo runs until a signal comes.
func demo(out, logs io.Writer, flags config.Flags, signals <-chan os.Signal) (err error) {
	dir, err := os.MkdirTemp("", "gateway-demo-")
	if err != nil {
		return fmt.Errorf("cannot make a directory for the policies: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system clears what is left
	files, err := library.Demo()
	if err == nil {
		err = os.CopyFS(dir, files)
	}
	if err != nil {
		return fmt.Errorf("cannot write the policies: %w", err)
	}
	var described atomic.Pointer[proxy.Gateway]
	api := backend.New(backend.Options{EvictOldest: true, Described: func() []resource.Resolver {
		if g := described.Load(); g != nil {
			return g.Resolvers(config.DefaultUpstream)
		}
		return nil
	}, Successes: (&documentedAnswers{dir: dir}).now})
	apiAddress, err := api.Start()
	if err != nil {
		return err
	}
	defer func() { _ = api.Close() }()

	flags.Upstream, flags.Policies = "http://"+apiAddress, []string{dir}
	c, err := config.Load("", flags)
	if err != nil {
		return &failure{exitUsage, err}
	}
	c.DrainSeconds = 0 // a demo has no load balancer
	log, closeLog, err := openLog(logs, &c.Telemetry.Log)
	if err != nil {
		return err
	}
	defer closeLog()
	n, err := startNode(c, log)
	if err != nil || n == nil {
		return err
	}
	described.Store(n.gateway.Load())
	text := strings.NewReplacer("{gateway}", n.sockets.text(), "{admin}", n.private.Addr().String(), "{api}",
		apiAddress, "{policies}", dir)
	if _, err := text.WriteString(out, demoText); err != nil {
		return err
	}
	return n.run(signals)
}

// documentedAnswers are how the documents among the demo's policies say that operations are answered. A set of policies
// in service has only what requests need, so that the files are read for it.
type documentedAnswers struct {
	dir string

	mu   sync.Mutex
	hash string
	all  []resource.Success
}

// now returns the answers of the files as they are, which are read when they change.
func (d *documentedAnswers) now() []resource.Success {
	d.mu.Lock()
	defer d.mu.Unlock()
	read := source.Read([]string{d.dir}, &source.Progress{})
	if read.Hash != d.hash {
		d.hash = read.Hash
		if c := policies.CompileWithPlans(read); c.Set != nil {
			// of files with errors the gateway keeps the last ones too
			d.all = c.Set.Successes()
		}
	}
	return d.all
}

// demoText is printed by the demo. README shows the answers to its commands.
const demoText = `The gateway       http://{gateway}
for operators     http://{admin}/ (status), /policies, /metrics, /readyz?verbose
a playground      http://{admin}/playground (policies and requests of your own)
the API behind    http://{api} (in memory, stores what it gets)
the policies      {policies} (read again when they change)

1. Defaults are filled in:

curl -sw "\n" http://{gateway}/apis/messaging.example.com/v1/namespaces/team-a/queues -H 'Content-Type: application/json' -d '{"metadata":{"name":"invoices"},"spec":{"owner":"team-billing"}}'

2. An invalid object is refused with all causes at once:

curl -sw "\n" http://{gateway}/apis/messaging.example.com/v1/namespaces/team-a/queues -H 'Content-Type: application/json' -d '{"metadata":{"name":"payments"},"spec":{"owner":"billing","delivery":"Ordered","partitions":100}}'

3. A client's status is ignored, here by an ordinary API:

curl -sw "\n" http://{gateway}/v2/orders -H 'Content-Type: application/json' -d '{"id":"o1","customer":"team-a","lines":[{"sku":"tea","unitPriceCents":450}],"status":{"phase":"Delivered"}}'

4. The fourth create in a minute is too many for the namespace sandbox: 429 with Retry-After:

for i in 1 2 3 4; do curl -si http://{gateway}/apis/messaging.example.com/v1/namespaces/sandbox/queues -H 'Content-Type: application/json' -d "{\"metadata\":{\"name\":\"q$i\"},\"spec\":{\"owner\":\"team-a\"}}"; echo; done

5. What is stored:

curl -sw "\n" http://{gateway}/apis/messaging.example.com/v1/namespaces/team-a/queues/invoices

Ctrl-C ends the demo.
`
