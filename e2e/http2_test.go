package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// startSharing runs the gateway before the API server by HTTP/2, over so many connections at most.
func startSharing(t *testing.T, connections int) *node {
	t.Helper()
	lines := fmt.Sprintf("upstreams:\n- {name: api, kubeconfig: %s, protocol: Auto, maxConnections: %d}\n",
		writeKubeconfig(t, server.HTTPS, server.CA, "of-the-gateway"), connections)
	return startGatewayWith(t, lines, nil, "testdata/policies.yaml", "testdata/crds.yaml")
}

// TestWatchesShareConnections holds 1000 watches over as few connections as the API server's 250 streams for each
// allow, and one more.
func TestWatchesShareConnections(t *testing.T) {
	const watches, connections = 1000, 1000/250 + 1
	through := startSharing(t, connections)
	widgets, err := dynamic.NewForConfig(&rest.Config{Host: through.url, QPS: 1000, Burst: 1000})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	team := widgets.Resource(widgetResource).Namespace("team-b")
	list, err := team.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	var begun, ended sync.WaitGroup
	for range watches {
		begun.Add(1)
		ended.Go(func() {
			url := through.url + "/apis/e2e.example.com/v1/namespaces/team-b/widgets?watch=true&resourceVersion=" +
				list.GetResourceVersion()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if err != nil {
				t.Error(err)
			}
			answer, err := client.Do(r)
			begun.Done()
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = answer.Body.Close() }()
			event, err := bufio.NewReader(answer.Body).ReadString('\n')
			if answer.StatusCode != http.StatusOK || err != nil || !strings.Contains(event, `"name":"watched"`) {
				t.Errorf("%d, %v: %q", answer.StatusCode, err, event)
			}
		})
	}
	begun.Wait()
	if _, err := team.Create(ctx, newWidget("watched", 1), metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	ended.Wait()
	if err := team.Delete(ctx, "watched", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// TestLeavingServerIsNoError asks an API server that leaves connections from time to time, as with --goaway-chance.
func TestLeavingServerIsNoError(t *testing.T) {
	server.SetLeaves(true)
	defer server.SetLeaves(false)
	through := startSharing(t, 100)
	widgets, err := dynamic.NewForConfig(&rest.Config{Host: through.url, QPS: 10_000, Burst: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	team := widgets.Resource(widgetResource).Namespace("team-b")
	informer := dynamicinformer.NewFilteredDynamicInformer(widgets, widgetResource, "team-b", 0, cache.Indexers{},
		nil).Informer()
	if err := informer.SetWatchErrorHandler(
		func(_ *cache.Reflector, err error) { t.Errorf("the watch: %v", err) }); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	defer close(stop)
	go informer.Run(stop)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 40 {
				if err := useWidget(ctx, team, fmt.Sprintf("leaving-%d-%d", worker, i)); err != nil {
					t.Errorf("worker %d, round %d: %v", worker, i, err)
				}
			}
		})
	}
	all.Wait()
	if left := server.SetLeaves(false); left == 0 {
		t.Error("the server left no connection")
	} else {
		t.Logf("the server left connections at %d requests", left)
	}
	if text := through.log.String(); strings.Contains(text, "the backend failed") {
		t.Error("a request failed")
	}
}

// useWidget creates an object, reads it, changes and deletes it.
func useWidget(ctx context.Context, team dynamic.ResourceInterface, name string) error {
	if _, err := team.Create(ctx, newWidget(name, 1), metav1.CreateOptions{}); err != nil {
		return err
	}
	for n := range int64(3) {
		o, err := team.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := unstructured.SetNestedField(o.Object, n, "spec", "replicas"); err != nil {
			return err
		}
		if _, err := team.Update(ctx, o, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if err := team.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if _, err := team.Get(ctx, name, metav1.GetOptions{}); !errors.IsNotFound(err) {
		return fmt.Errorf("a deleted object is answered with %w", err)
	}
	return nil
}
