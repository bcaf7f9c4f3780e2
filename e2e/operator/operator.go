// Package operator is an operator made with controller-runtime, as tests run it before servers.
package operator

import (
	"context"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Namespace is the one whose widgets it reconciles.
const Namespace = "operator"

const cleanUp = "e2e.example.com/clean-up"

// An Operator reconciles widgets: it says in the status what became of the spec, and holds them with a finalizer until
// it has cleaned up after them.
type Operator struct {
	ctrlclient.Client
	Reconciled, Cleaned atomic.Int32
	Denied              atomic.Pointer[error] // what became of an update that a policy forbids
}

// Reconcile implements reconcile.Reconciler.
func (o *Operator) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	widget := Widget()
	if err := o.Get(ctx, r.NamespacedName, widget); err != nil {
		return ctrl.Result{}, ctrlclient.IgnoreNotFound(err)
	}
	if !widget.GetDeletionTimestamp().IsZero() {
		if controllerutil.RemoveFinalizer(widget, cleanUp) {
			o.Cleaned.Add(1)
			return ctrl.Result{}, o.Update(ctx, widget)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(widget, cleanUp) {
		return ctrl.Result{}, o.Update(ctx, widget)
	}
	replicas, _, err := unstructured.NestedInt64(widget.Object, "spec", "replicas")
	if err != nil {
		return ctrl.Result{}, err
	}
	if have, found, _ := unstructured.NestedInt64(widget.Object, "status", "replicas"); found && have == replicas {
		o.Reconciled.Add(1)
		return ctrl.Result{}, nil
	}
	greedy := widget.DeepCopy()
	if err := unstructured.SetNestedField(greedy.Object, int64(9), "spec", "replicas"); err != nil {
		return ctrl.Result{}, err
	}
	denial := o.Update(ctx, greedy)
	o.Denied.Store(&denial)
	before := ctrlclient.MergeFrom(widget.DeepCopy())
	if err := unstructured.SetNestedMap(widget.Object, map[string]any{"replicas": replicas, "phase": "Ready"},
		"status"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, o.Status().Patch(ctx, widget, before)
}

// Widget returns an object of the kind that it reconciles.
func Widget() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "e2e.example.com/v1", "kind": "Widget"}}
}

// Start runs one replica of the operator until its context ends.
func (o *Operator) Start(ctx context.Context, to *rest.Config, id string) (stopped <-chan error, err error) {
	ctrl.SetLogger(logr.Discard())
	to = rest.CopyConfig(to)
	to.QPS, to.Burst, to.UserAgent = 1000, 1000, id
	unique := true
	m, err := ctrl.NewManager(to, manager.Options{
		Logger:                        logr.Discard(),
		Metrics:                       metrics.Options{BindAddress: "0"},
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{Namespace: {}}},
		Controller:                    config.Controller{SkipNameValidation: &unique},
		LeaderElection:                true,
		LeaderElectionID:              "operator",
		LeaderElectionNamespace:       Namespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, err
	}
	o.Client = m.GetClient()
	if err := ctrl.NewControllerManagedBy(m).Named("widgets").For(Widget()).Complete(o); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- m.Start(ctx) }()
	return done, nil
}
