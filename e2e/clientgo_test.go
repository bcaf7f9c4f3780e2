package e2e

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
)

var widgetResource = schema.GroupVersionResource{Group: "e2e.example.com", Version: "v1", Resource: "widgets"}

func newWidget(name string, replicas int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "e2e.example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": name, "namespace": "team-b"},
		"spec":     map[string]any{"replicas": replicas},
	}}
}

// client-go's informers, conflicts, chunked lists and server-side apply work through the gateway.
func TestClientGo(t *testing.T) {
	through := startGateway(t, "testdata/policies.yaml", "testdata/crds.yaml")
	widgets, err := dynamic.NewForConfig(&rest.Config{Host: through.url, QPS: 1000, Burst: 1000})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	team := widgets.Resource(widgetResource).Namespace("team-b")

	informers := dynamicinformer.NewFilteredDynamicSharedInformerFactory(widgets, 0, "team-b", nil)
	informer := informers.ForResource(widgetResource).Informer()
	seen := make(chan string, 100)
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { seen <- "added " + o.(*unstructured.Unstructured).GetName() },
		DeleteFunc: func(any) { seen <- "deleted" },
		UpdateFunc: func(_, o any) {
			replicas, _, _ := unstructured.NestedInt64(o.(*unstructured.Unstructured).Object, "spec", "replicas")
			seen <- "updated to " + string(rune('0'+replicas))
		},
	}); err != nil {
		t.Fatal(err)
	}
	informers.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer never synced")
	}
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-seen:
			if got != want {
				t.Errorf("the informer saw %q, want %q", got, want)
			}
		case <-ctx.Done():
			t.Fatalf("the informer never saw %q", want)
		}
	}

	created, err := team.Create(ctx, newWidget("informed", 2), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	expect("added informed")
	stale := created.DeepCopy()
	if err := unstructured.SetNestedField(created.Object, int64(3), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	if _, err := team.Update(ctx, created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("updated to 3")
	tries := 0
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if tries++; tries > 1 {
			fresh, err := team.Get(ctx, "informed", metav1.GetOptions{})
			if err != nil {
				return err
			}
			stale = fresh
		}
		if err := unstructured.SetNestedField(stale.Object, int64(4), "spec", "replicas"); err != nil {
			return err
		}
		_, err := team.Update(ctx, stale, metav1.UpdateOptions{})
		return err
	}); err != nil || tries != 2 {
		t.Errorf("an update of a stale object: %v after %d tries", err, tries)
	}
	expect("updated to 4")
	if _, err := team.Apply(ctx, "informed", newWidget("informed", 5),
		metav1.ApplyOptions{FieldManager: "cli", Force: true}); err != nil {
		t.Error(err)
	}
	expect("updated to 5")
	if _, err := team.Apply(ctx, "informed", newWidget("informed", 6),
		metav1.ApplyOptions{FieldManager: "cli", Force: true}); err == nil {
		t.Error("what the policy refuses was applied")
	}
	for _, name := range []string{"b", "c", "d", "e"} {
		if _, err := team.Create(ctx, newWidget(name, 1), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("added " + name)
	}
	var names []string
	for page := (metav1.ListOptions{Limit: 2}); ; {
		list, err := team.List(ctx, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			names = append(names, item.GetName())
		}
		if page.Continue = list.GetContinue(); page.Continue == "" {
			break
		}
	}
	if len(names) != 5 {
		t.Errorf("a list in chunks has %v", names)
	}
	if err := team.Delete(ctx, "informed", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	expect("deleted")
}
