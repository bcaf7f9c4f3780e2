package gatewayapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// apply brings objects into the cluster as `kubectl apply --server-side` does.
func apply(t *testing.T, text string) {
	t.Helper()
	c := newClient(t)
	for _, o := range parse(t, text) {
		if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("tests"),
			client.ForceOwnership); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// remove deletes objects, as `kubectl delete` does, also after the test.
func remove(t *testing.T, text string) {
	t.Helper()
	c := newClient(t)
	for _, o := range parse(t, text) {
		if err := c.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

func newClient(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(shared.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := gatewayv1.Install(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	return c
}

// parse reads the documents of a text.
func parse(t *testing.T, text string) (all []*unstructured.Unstructured) {
	t.Helper()
	reader := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := reader.Decode(o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
}
