// Command bench measures the gateway beside its peers on one machine: nginx, haproxy, a minimal fasthttp proxy, the
// standard library's reverse proxy and the backend alone. It starts them all on loopback, sends them the same requests
// in interleaved rounds, and prints a Markdown table with throughput, latency and CPU time per request, and the ratios
// that hold on other machines too. In the folder bench:
//
//	go run .                everything but watches, a quarter of an hour
//	go run . -rounds 3 -targets nginx,fasthttp,gateway
//	go run . -json raw.json keeps the raw figures
//	go run . -watches 2000  idle watches instead, about half a minute
//	go run . -set           a large set of policy files instead, about a minute
//	go run . -steps         what each step of full admission costs under load, two minutes
//	go run . -sizes         what one and two cores serve, and what each feature adds, about four minutes
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 7, "rounds; in each, every target is measured once under every load")
	flag.DurationVar(&o.duration, "duration", 2*time.Second, "length of one measurement, whole seconds")
	flag.IntVar(&o.connections, "connections", 64, "keep-alive connections of the load generator")
	flag.StringVar(&o.targets, "targets", "", "what to measure, separated by commas (default all): "+
		strings.Join(targetNames(), ","))
	flag.StringVar(&o.loads, "loads", "", "requests to send, separated by commas (default all): "+
		strings.Join(loadNames(loads()), ","))
	flag.StringVar(&o.jsonFile, "json", "", "write the raw figures to this file")
	flag.StringVar(&o.gateway, "gateway", "", "the gateway's binary (default: build it)")
	flag.StringVar(&o.serverCPUs, "server-cpus", "",
		"CPUs of the server under test, as taskset reads them (default: the first)")
	flag.StringVar(&o.loadCPUs, "load-cpus", "", "CPUs of the load generator and the backend (default: the others)")
	flag.IntVar(&o.watches, "watches", 0, "measure so many idle watches instead: their memory, and the time that events take")
	flag.BoolVar(&o.areSizesAsked, "sizes", false,
		"measure what one and two cores serve, and what each feature adds, instead")
	flag.BoolVar(&o.areStepsAsked, "steps", false, "measure what each step of full admission costs under load instead")
	flag.BoolVar(&o.isSetAsked, "set", false, "measure the start with a large set of policy files, and one changed line of it, instead")
	flag.BoolVar(&o.mustReach, "hold", false, "exit with code 1 if a goal is missed")
	flag.StringVar(&o.peer, "peer", "", "serve as a peer (backend, backend-tls, backend-grpc, fasthttp, net-http) and do nothing else")
	flag.StringVar(&o.listen, "listen", "", "with -peer: the address to listen on")
	flag.StringVar(&o.backend, "backend", "", "with -peer: the address of the backend")
	flag.StringVar(&o.certificate, "certificate", "", "with -peer net-http: speak TLS, with the certificate and the key in the files of this name and .crt, .key")
	flag.Parse()

	err := fmt.Errorf("bench takes flags only, not %q", flag.Args())
	switch {
	case flag.NArg() > 0:
	case o.peer != "":
		err = servePeer(o.peer, o.listen, o.backend, o.certificate)
	default:
		// A peer has nothing to clean up: only the measuring program stops others first.
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
		switch {
		case o.watches > 0:
			err = runWatches(ctx, o)
		case o.isSetAsked:
			err = runSet(ctx, o)
		case o.areStepsAsked:
			err = runSteps(ctx, o)
		case o.areSizesAsked:
			err = runSizes(ctx, o)
		default:
			o.isTable = true
			err = run(ctx, o)
		}
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures what the options ask for and prints the report.
func run(ctx context.Context, o options) error {
	rows, err := chosen(list(o.targets))
	if err != nil {
		return err
	}
	requests, err := chosenLoads(list(o.loads))
	if err != nil {
		return err
	}
	m, o, closeAll, err := prepare(ctx, o, rows)
	if err != nil {
		return err
	}
	defer closeAll()
	report, err := m.measure(ctx, o, rows, requests)
	if err != nil {
		return err
	}
	return print(report, o)
}

// print writes the table to the standard output and the raw figures to their file.
func print(report *Report, o options) error {
	if err := report.table(os.Stdout); err != nil {
		return err
	}
	fmt.Println()
	reached, err := report.verdict(os.Stdout)
	if err != nil {
		return err
	}
	if o.jsonFile != "" {
		raw, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(o.jsonFile, append(raw, '\n'), 0o644); err != nil {
			return err
		}
	}
	if o.mustReach && !reached {
		return fmt.Errorf("a goal is missed")
	}
	return nil
}

func list(commaSeparated string) []string {
	if commaSeparated == "" {
		return nil
	}
	return strings.Split(commaSeparated, ",")
}
