package e2e

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admission-gateway/gateway/e2e/operator"
)

// An operator made with controller-runtime, two replicas of it and one leader, reconciles through the gateway: caches,
// leases, finalizers, the status subresource and deletion; what a policy forbids is refused to it as to anybody.
func TestOperator(t *testing.T) {
	if err := define("testdata/leases.yaml"); err != nil {
		t.Fatal(err)
	}
	through := startGateway(t, "testdata/policies.yaml", "testdata/crds.yaml", "testdata/leases.yaml")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var first, second operator.Operator
	firstTerm, resign := context.WithCancel(ctx)
	defer resign()
	stopped, err := first.Start(firstTerm, &rest.Config{Host: through.url}, "first")
	if err != nil {
		t.Fatal(err)
	}

	direct, err := ctrlclient.New(&rest.Config{Host: through.url}, ctrlclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	widget := operator.Widget()
	widget.SetNamespace(operator.Namespace)
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
	if denial := *first.Denied.Load(); !apierrors.IsInvalid(denial) {
		t.Errorf("the operator was let do what the policy forbids: %v", denial)
	}

	secondStopped, err := second.Start(ctx, &rest.Config{Host: through.url}, "second")
	if err != nil {
		t.Fatal(err)
	}
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
	if first.Cleaned.Load() != 0 || second.Cleaned.Load() != 1 {
		t.Errorf("the replicas cleaned up %d and %d times, want 0 and 1", first.Cleaned.Load(), second.Cleaned.Load())
	}
	cancel()
	if err := <-secondStopped; err != nil {
		t.Errorf("the second replica ended with: %v", err)
	}
}
