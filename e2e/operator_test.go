package e2e

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

const (
	operatorNamespace = "operator"
	cleanUp           = "e2e.example.com/clean-up"
)

// operator reconciles widgets: it says in the status what became of the spec, and holds them with a finalizer until it has
// cleaned up after them.
type operator struct {
	ctrlclient.Client
	reconciled, cleaned atomic.Int32
	denied              atomic.Pointer[error] // what became of an update that a policy forbids
}

// Reconcile implements reconcile.Reconciler.
func (o *operator) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	widget := anyWidget()
	if err := o.Get(ctx, r.NamespacedName, widget); err != nil {
		return ctrl.Result{}, ctrlclient.IgnoreNotFound(err)
	}
	if !widget.GetDeletionTimestamp().IsZero() {
		if controllerutil.RemoveFinalizer(widget, cleanUp) {
			o.cleaned.Add(1)
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
		o.reconciled.Add(1)
		return ctrl.Result{}, nil
	}
	greedy := widget.DeepCopy()
	if err := unstructured.SetNestedField(greedy.Object, int64(9), "spec", "replicas"); err != nil {
		return ctrl.Result{}, err
	}
	denial := o.Update(ctx, greedy)
	o.denied.Store(&denial)
	before := ctrlclient.MergeFrom(widget.DeepCopy())
	if err := unstructured.SetNestedMap(widget.Object, map[string]any{"replicas": replicas, "phase": "Ready"}, "status"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, o.Status().Patch(ctx, widget, before)
}

func anyWidget() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "e2e.example.com/v1", "kind": "Widget"}}
}

// start runs one replica of the operator until its context ends.
func (o *operator) start(t *testing.T, ctx context.Context, url, id string) (stopped <-chan error) {
	t.Helper()
	unique := true
	m, err := ctrl.NewManager(&rest.Config{Host: url, QPS: 1000, Burst: 1000, UserAgent: id}, manager.Options{
		Logger:                        logr.Discard(),
		Metrics:                       metrics.Options{BindAddress: "0"},
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{operatorNamespace: {}}},
		Controller:                    config.Controller{SkipNameValidation: &unique},
		LeaderElection:                true,
		LeaderElectionID:              "operator",
		LeaderElectionNamespace:       operatorNamespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Client = m.GetClient()
	if err := ctrl.NewControllerManagedBy(m).Named("widgets").For(anyWidget()).Complete(o); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- m.Start(ctx) }()
	return done
}

// An operator made with controller-runtime, two replicas of it and one leader, reconciles through the gateway: caches,
// leases, finalizers, the status subresource and deletion; what a policy forbids is refused to it as to anybody.
func TestOperator(t *testing.T) {
	if err := define("testdata/leases.yaml"); err != nil {
		t.Fatal(err)
	}
	through := startGateway(t, "testdata/policies.yaml", "testdata/crds.yaml", "testdata/leases.yaml")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ctrl.SetLogger(logr.Discard())
	var first, second operator
	firstTerm, resign := context.WithCancel(ctx)
	defer resign()
	stopped := first.start(t, firstTerm, through.url, "first")

	direct, err := ctrlclient.New(&rest.Config{Host: through.url}, ctrlclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	widget := anyWidget()
	widget.SetNamespace(operatorNamespace)
	widget.SetName("one")
	if err := unstructured.SetNestedField(widget.Object, int64(2), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	if err := direct.Create(ctx, widget); err != nil {
		t.Fatal(err)
	}
	reports := func(replicas int64) func() bool {
		return func() bool {
			if err := direct.Get(ctx, ctrlclient.ObjectKeyFromObject(widget), widget); err != nil {
				t.Fatal(err)
			}
			have, _, _ := unstructured.NestedInt64(widget.Object, "status", "replicas")
			return have == replicas
		}
	}
	eventually(t, "the first replica reports 2", reports(2))
	if denial := *first.denied.Load(); !apierrors.IsInvalid(denial) {
		t.Errorf("the operator was let do what the policy forbids: %v", denial)
	}

	secondStopped := second.start(t, ctx, through.url, "second")
	resign()
	if err := <-stopped; err != nil {
		t.Errorf("the first replica ended with: %v", err)
	}
	if err := unstructured.SetNestedField(widget.Object, int64(3), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	if err := direct.Update(ctx, widget); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second replica takes over", reports(3))
	if err := direct.Delete(ctx, widget); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the widget is let go", func() bool {
		return apierrors.IsNotFound(direct.Get(ctx, ctrlclient.ObjectKeyFromObject(widget), widget))
	})
	if first.cleaned.Load() != 0 || second.cleaned.Load() != 1 {
		t.Errorf("the replicas cleaned up %d and %d times, want 0 and 1", first.cleaned.Load(), second.cleaned.Load())
	}
	cancel()
	if err := <-secondStopped; err != nil {
		t.Errorf("the second replica ended with: %v", err)
	}
}
