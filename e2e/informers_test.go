package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	definitioninformers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// watched are kinds of Kubernetes that the controllers of kube-controller-manager watch, and that the API server of
// these tests can serve: those whose group may be one of a CustomResourceDefinition.
var watched = []struct {
	group, version, kind, plural string
	namespaced                   bool
}{
	{"discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", true},
	{"coordination.k8s.io", "v1", "Lease", "leases", true},
	{"networking.k8s.io", "v1", "Ingress", "ingresses", true},
	{"networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", true},
	{"storage.k8s.io", "v1", "StorageClass", "storageclasses", false},
	{"storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", false},
	{"storage.k8s.io", "v1", "CSINode", "csinodes", false},
	{"storage.k8s.io", "v1", "CSIDriver", "csidrivers", false},
	{"rbac.authorization.k8s.io", "v1", "Role", "roles", true},
	{"rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", true},
	{"rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false},
	{"rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", false},
	{"scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", false},
	{"certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", false},
}

// defineWatched makes the API server know them until the test ends.
func defineWatched(t *testing.T, direct *rest.Config) {
	t.Helper()
	client, err := apiextensions.NewForConfig(direct)
	if err != nil {
		t.Fatal(err)
	}
	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	anything := true
	for _, k := range watched {
		scope := apiextensionsv1.ClusterScoped
		if k.namespaced {
			scope = apiextensionsv1.NamespaceScoped
		}
		d := &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: k.plural + "." + k.group,
				Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, a test"}},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: k.group, Scope: scope,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: k.plural,
					Singular: strings.ToLower(k.kind), Kind: k.kind, ListKind: k.kind + "List"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: k.version, Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{
						OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object",
							XPreserveUnknownFields: &anything}},
				}},
			},
		}
		if _, err := definitions.Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := definitions.Delete(context.Background(), d.Name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	objects, err := dynamic.NewForConfig(direct)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range watched {
		resource := objects.Resource(schema.GroupVersionResource{Group: k.group, Version: k.version,
			Resource: k.plural})
		eventually(t, k.plural+" are served", func() bool {
			_, err := resource.List(t.Context(), metav1.ListOptions{})
			return err == nil
		})
	}
}

// manySlices returns how many EndpointSlices a LIST has.
func manySlices() int {
	if testing.Short() {
		return 2000
	}
	return 10_000
}

// slice is an EndpointSlice of about 1.2 KB.
func slice(i int) *discoveryv1.EndpointSlice {
	ready, port, name := true, int32(8443), "https"
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("checkout-%05d", i), Namespace: "payments",
			Labels: map[string]string{discoveryv1.LabelServiceName: "checkout"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
	}
	for j := range 6 {
		node := fmt.Sprintf("node-%d", (i+j)%100)
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.%d.%d.%d", i/250, i%250, j+1)}, NodeName: &node,
			Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready},
		})
	}
	return s
}

// createSlices creates them directly, several at a time.
func createSlices(t *testing.T, direct *rest.Config) {
	t.Helper()
	client, err := kubernetes.NewForConfig(direct)
	if err != nil {
		t.Fatal(err)
	}
	next := make(chan int)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for i := range next {
				if _, err := client.DiscoveryV1().EndpointSlices("payments").Create(t.Context(), slice(i),
					metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range manySlices() {
		next <- i
	}
	close(next)
	workers.Wait()
}

// TestInformers runs the informers of kube-controller-manager through the gateway, by TLS on both
// sides: the informers of its typed clients, the ones on metadata of its garbage collector, the
// dynamic ones, and the ones on definitions, in protobuf. All objects arrive, also in LISTs of
// 10,000, in pages and compressed, and no answer comes in more pieces than the server's own.
func TestInformers(t *testing.T) {
	direct := &rest.Config{Host: server.HTTPS, TLSClientConfig: rest.TLSClientConfig{CAFile: server.CA}, QPS: 100_000,
		Burst: 100_000}
	// typed clients write protobuf by default, which custom resources are not read in
	direct.ContentType = runtime.ContentTypeJSON
	defineWatched(t, direct)
	createSlices(t, direct)
	if t.Failed() {
		t.FailNow()
	}
	user := startSecureGateway(t)
	through, err := clientcmd.BuildConfigFromFlags("", user)
	if err != nil {
		t.Fatal(err)
	}
	through.QPS, through.Burst = 1000, 1000
	controllers := rest.CopyConfig(through)
	controllers.ContentType, controllers.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+
		","+runtime.ContentTypeJSON
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()

	t.Run("informers", func(t *testing.T) { runInformers(ctx, t, direct, through, controllers) })
	t.Run("LISTs", func(t *testing.T) { compareLists(t, direct, through) })
	t.Run("pages", func(t *testing.T) {
		client, err := kubernetes.NewForConfig(controllers)
		if err != nil {
			t.Fatal(err)
		}
		names, pages := map[string]bool{}, 0
		for o := (metav1.ListOptions{Limit: 700}); ; pages++ {
			list, err := client.DiscoveryV1().EndpointSlices("").List(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			for i := range list.Items {
				names[list.Items[i].Name] = true
			}
			if o.Continue = list.Continue; o.Continue == "" {
				break
			}
		}
		if len(names) != manySlices() || pages != (manySlices()-1)/700 {
			t.Errorf("%d objects came in %d pages", len(names), pages+1)
		}
	})
}

// runInformers starts all informers, waits until they know everything, and lets them see a change.
func runInformers(ctx context.Context, t *testing.T, direct, through, controllers *rest.Config) {
	typed, err := kubernetes.NewForConfig(controllers)
	if err != nil {
		t.Fatal(err)
	}
	ofMetadata, err := metadata.NewForConfig(controllers)
	if err != nil {
		t.Fatal(err)
	}
	ofObjects, err := dynamic.NewForConfig(through)
	if err != nil {
		t.Fatal(err)
	}
	ofDefinitions, err := apiextensions.NewForConfig(controllers)
	if err != nil {
		t.Fatal(err)
	}
	shared := informers.NewSharedInformerFactory(typed, 0)
	collector := metadatainformer.NewSharedInformerFactory(ofMetadata, 0)
	namespaces := dynamicinformer.NewDynamicSharedInformerFactory(ofObjects, 0)
	definitions := definitioninformers.NewSharedInformerFactory(ofDefinitions, 0)
	caches := map[string]cache.SharedIndexInformer{
		"definitions": definitions.Apiextensions().V1().CustomResourceDefinitions().Informer()}
	for _, k := range watched {
		resource := schema.GroupVersionResource{Group: k.group, Version: k.version, Resource: k.plural}
		generic, err := shared.ForResource(resource)
		if err != nil {
			t.Fatal(err)
		}
		caches["typed "+k.plural] = generic.Informer()
		caches["metadata of "+k.plural] = collector.ForResource(resource).Informer()
		caches["dynamic "+k.plural] = namespaces.ForResource(resource).Informer()
	}
	seen := make(chan string, 100)
	if _, err := caches["typed leases"].AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { seen <- "added " + o.(*coordinationv1.Lease).Name },
		UpdateFunc: func(_, o any) {
			seen <- fmt.Sprintf("renewed by %d bytes", len(*o.(*coordinationv1.Lease).Spec.HolderIdentity))
		},
	}); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for _, f := range []interface{ Start(<-chan struct{}) }{shared, collector, namespaces, definitions} {
		f.Start(ctx.Done())
	}
	for name, c := range caches {
		if !cache.WaitForCacheSync(ctx.Done(), c.HasSynced) {
			t.Fatalf("the informer of %s never synced", name)
		}
	}
	t.Logf("%d informers synced in %v", len(caches), time.Since(start))
	for _, name := range []string{"typed endpointslices", "metadata of endpointslices", "dynamic endpointslices"} {
		keys := map[string]bool{}
		for _, key := range caches[name].GetStore().ListKeys() {
			keys[key] = true
		}
		for i := range manySlices() {
			if key := fmt.Sprintf("payments/checkout-%05d", i); !keys[key] {
				t.Fatalf("%s: %d objects are there, but not %s", name, len(keys), key)
			}
		}
		if len(keys) != manySlices() {
			t.Errorf("%s: %d objects are there", name, len(keys))
		}
	}
	for _, i := range []int{0, manySlices() / 2, manySlices() - 1} {
		object, found, err := caches["typed endpointslices"].GetStore().GetByKey(fmt.Sprintf("payments/checkout-%05d",
			i))
		if got, ok := object.(*discoveryv1.EndpointSlice); !found || err != nil || !ok ||
			!equality.Semantic.DeepEqual(got.Endpoints, slice(i).Endpoints) {
			t.Errorf("EndpointSlice %d is %v, %v", i, object, err)
		}
	}
	if n := len(caches["definitions"].GetStore().ListKeys()); n < len(watched) {
		t.Errorf("%d definitions are there", n)
	}

	changes, err := kubernetes.NewForConfig(direct)
	if err != nil {
		t.Fatal(err)
	}
	leases := changes.CoordinationV1().Leases("payments")
	lease, err := leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "manager"}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	holder := strings.Repeat("x", 300_000)
	lease.Spec.HolderIdentity = &holder
	if _, err := leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"added manager", "renewed by 300000 bytes"} {
		select {
		case got := <-seen:
			if got != want {
				t.Errorf("the informer saw %q, want %q", got, want)
			}
		case <-ctx.Done():
			t.Fatalf("the informer never saw %q", want)
		}
	}
}

// compareLists reads LISTs of everything directly and through the gateway, plain and compressed, in JSON and protobuf:
// the objects are the same, in about as few chunks.
func compareLists(t *testing.T, direct, through *rest.Config) {
	const slices, definitions = "/apis/discovery.k8s.io/v1/endpointslices",
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	const metadataOnly = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	for _, c := range []struct{ path, accept, encoding string }{
		{slices, runtime.ContentTypeJSON, "identity"},
		{slices, runtime.ContentTypeJSON, "gzip"},
		{slices, runtime.ContentTypeProtobuf + metadataOnly, "identity"},
		{slices, runtime.ContentTypeProtobuf + metadataOnly, "gzip"},
		{definitions, runtime.ContentTypeProtobuf, "identity"},
		{definitions, runtime.ContentTypeProtobuf, "gzip"},
	} {
		want, straight := listRaw(t, direct, c.path, c.accept, c.encoding)
		got, chunks := listRaw(t, through, c.path, c.accept, c.encoding)
		t.Logf("%s as %s, %s: %d bytes in %d chunks, directly %d", c.path, c.accept, c.encoding, len(got), chunks,
			straight)
		if !bytes.Equal(got, want) {
			t.Errorf("%s as %s, %s: %d bytes came, directly %d others", c.path, c.accept, c.encoding, len(got),
				len(want))
		}
		// The API server may send all in one chunk. A record of TLS has 16 KiB at most, and is smaller on a new
		// connection.
		if most := straight + len(got)/(8<<10) + 20; chunks > most {
			t.Errorf("%s as %s, %s: %d bytes came in %d chunks, want at most %d", c.path, c.accept, c.encoding,
				len(got), chunks, most)
		}
	}
}

// listRaw reads an answer by TLS, and returns its body, decompressed, and how many chunks it came in.
func listRaw(t *testing.T, config *rest.Config, path, accept, encoding string) (body []byte, chunks int) {
	t.Helper()
	u, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(config.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 10 * time.Second}, Config: &tls.Config{RootCAs: pool}}
	c, err := dialer.DialContext(t.Context(), "tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: %s\r\nAccept-Encoding: %s\r\nAuthorization: Bearer of-alice\r\n\r\n", path, u.Host, accept, encoding); err != nil {
		t.Fatal(err)
	}
	var framed bytes.Buffer
	in := bufio.NewReader(c)
	head, err := http.ReadResponse(bufio.NewReader(io.TeeReader(in, &framed)), nil)
	if err != nil || head.StatusCode != http.StatusOK {
		t.Fatalf("%s: %+v, %v", path, head, err)
	}
	if _, err := io.Copy(io.Discard, head.Body); err != nil {
		t.Fatal(err)
	}
	_, raw, _ := bytes.Cut(framed.Bytes(), []byte("\r\n\r\n"))
	body = raw
	if head.ContentLength < 0 {
		for rest := raw; ; chunks++ {
			line, after, _ := bytes.Cut(rest, []byte("\r\n"))
			var size int
			if _, err := fmt.Sscanf(string(line), "%x", &size); err != nil || size == 0 {
				break
			}
			rest = after[size+2:]
		}
		if body, err = io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(raw))); err != nil {
			t.Fatal(err)
		}
	}
	if head.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return body, chunks
}
