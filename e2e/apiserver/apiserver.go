// Package apiserver runs a real Kubernetes API server inside the process: k8s.io/apiextensions-apiserver over an
// embedded etcd, on loopback, without authentication and authorization, and with admission in one namespace alone. It
// serves custom resources, as kube-apiserver does.
package apiserver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	noopoteltrace "go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apiserver/pkg/admission"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admission-gateway/gateway/e2e/etcd"
)

// Server is a running API server.
type Server struct {
	// HTTP and HTTPS are its base URLs.
	HTTP, HTTPS string
	// Guarded is the base URL at which it knows users, who may do what Allow says.
	Guarded string
	// CA is the file with the certificate that HTTPS is served with.
	CA string

	stop    context.CancelFunc
	stopped chan error
	etcd    *etcd.Store
	asked   *asked
	guard   *guard
	auditor *auditor
	witness *witness
}

// Start starts a server that keeps its data and certificates in dir, and waits until it is ready.
func Start(dir string) (*Server, error) {
	store, err := etcd.Start(filepath.Join(dir, "etcd"))
	if err != nil {
		return nil, err
	}
	s, err := start(dir, store)
	if err != nil {
		store.Close()
		return nil, err
	}
	return s, nil
}

func start(dir string, store *etcd.Store) (*Server, error) {
	certs := filepath.Join(dir, "certs")
	notes := &asked{seen: map[string]bool{}}
	records := &auditor{}
	shown := &witness{Handler: admission.NewHandler(admission.Create, admission.Update), seen: map[string][]byte{}}
	config, err := configure(store.URL, certs, notes, records, shown)
	if err != nil {
		return nil, err
	}
	server, err := config.Complete().New(genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{
		HTTP:    "http://" + listener.Addr().String(),
		Guarded: "http://" + door.Addr().String(),
		guard:   &guard{allowed: map[string]bool{}, reasons: map[string]string{}},
		HTTPS:   "https://" + config.GenericConfig.SecureServing.Listener.Addr().String(),
		CA:      filepath.Join(certs, "apiserver.crt"),
		stop:    stop,
		stopped: make(chan error, 1),
		etcd:    store,
		asked:   notes,
		auditor: records,
		witness: shown,
	}
	plain := &http.Server{Handler: server.GenericAPIServer.Handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = plain.Serve(listener) }()
	guarded := &http.Server{Handler: s.guard.chain(server.GenericAPIServer.Handler, &config.GenericConfig.Config),
		ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = guarded.Serve(door) }()
	prepared := server.GenericAPIServer.PrepareRun()
	go func() {
		err := prepared.RunWithContext(ctx)
		_ = plain.Close()
		_ = guarded.Close()
		s.stopped <- err
	}()
	return s, s.waitReady()
}

// configure does what options.CustomResourceDefinitionsServerOptions.Config does, without its need
// of a core API to talk to.
func configure(storeURL, certs string, notes *asked, records *auditor, shown *witness) (*apiserver.Config, error) {
	o := options.NewCustomResourceDefinitionsServerOptions(os.Stdout, os.Stderr)
	ro := o.RecommendedOptions
	ro.Etcd.StorageConfig.Transport.ServerList = []string{storeURL}
	var err error
	if ro.SecureServing.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	ro.SecureServing.BindAddress = net.IPv4(127, 0, 0, 1)
	ro.SecureServing.ServerCert.CertDirectory = certs
	ro.Authentication, ro.Authorization, ro.Admission, ro.CoreAPI = nil, nil, nil, nil
	ro.Features.EnablePriorityAndFairness = false
	for _, step := range []func() error{
		func() error { return o.APIEnablement.RuntimeConfig.Set("api/all=true") },
		o.ServerRunOptions.ComponentGlobalsRegistry.Set,
		o.Complete,
		o.Validate,
		func() error {
			return ro.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)})
		},
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	generic := genericapiserver.NewRecommendedConfig(apiserver.Codecs)
	generic.SharedInformerFactory = informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	if err := o.ServerRunOptions.ApplyTo(&generic.Config); err != nil {
		return nil, err
	}
	if err := ro.ApplyTo(generic); err != nil {
		return nil, err
	}
	if err := o.APIEnablement.ApplyTo(&generic.Config, apiserver.DefaultAPIResourceConfigSource(),
		apiserver.Scheme); err != nil {
		return nil, err
	}
	definitions := openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(generatedopenapi.GetOpenAPIDefinitions)
	namer := openapinamer.NewDefinitionNamer(apiserver.Scheme, scheme.Scheme)
	generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	generic.BuildHandlerChainFunc = notes.chain
	generic.AuditBackend, generic.AuditPolicyRuleEvaluator = records.backend(), records
	generic.AdmissionControl = admission.NewChainHandler(
		stamp{admission.NewHandler(admission.Create, admission.Update)}, shown)
	return &apiserver.Config{
		GenericConfig: generic,
		ExtraConfig: apiserver.ExtraConfig{
			CRDRESTOptionsGetter: options.NewCRDRESTOptionsGetter(*ro.Etcd, generic.ResourceTransformers,
				generic.StorageObjectCountTracker),
			ServiceResolver: noServices{},
			AuthResolverWrapper: webhook.NewDefaultAuthenticationInfoResolverWrapper(nil, nil,
				generic.LoopbackClientConfig, noopoteltrace.NewTracerProvider()),
		},
	}, nil
}

// noServices resolves the services of conversion webhooks; there are none.
type noServices struct{}

func (noServices) ResolveEndpoint(namespace, name string, _ int32) (*url.URL, error) {
	return nil, fmt.Errorf("there is no service %s/%s", namespace, name)
}

func (s *Server) waitReady() error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		select {
		case err := <-s.stopped:
			return fmt.Errorf("the API server ended: %w", err)
		default:
		}
		if answer, err := http.Get(s.HTTP + "/readyz"); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
	s.Stop()
	return fmt.Errorf("the API server was not ready within a minute")
}

// Stop ends the server and its store.
func (s *Server) Stop() {
	s.stop()
	select {
	case <-s.stopped:
	case <-time.After(20 * time.Second):
	}
	s.etcd.Close()
}
