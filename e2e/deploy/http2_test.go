package deploy

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/cert"

	"github.com/admission-gateway/gateway/e2e/testutil"
)

// A relay passes bytes between a client and a server, and counts the connections.
type relay struct {
	url  string
	made atomic.Int64
}

// startRelay runs a relay before the cluster until the test ends.
func (c *cluster) startRelay(t *testing.T) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	r := &relay{url: "https://" + listener.Addr().String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			r.made.Add(1)
			go func() {
				server, err := net.Dial("tcp", strings.TrimPrefix(c.url, "https://"))
				if err != nil {
					_ = client.Close()
					return
				}
				var both sync.WaitGroup
				for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
					both.Go(func() {
						_, _ = io.Copy(pair[0], pair[1])
						_ = pair[0].Close()
					})
				}
				both.Wait()
			}()
		}
	}()
	return r
}

// A door is a gateway that speaks HTTP/2 by TLS with its clients, and HTTP/2 with the API server.
type door struct {
	*cluster
	log  string // the file of its log, which has all requests
	made *atomic.Int64
}

// startDoor runs a door before the cluster until the test ends.
func (c *cluster) startDoor(t *testing.T) *door {
	t.Helper()
	behind := c.startRelay(t)
	dir, listen, admin := t.TempDir(), testutil.FreeAddress(t), testutil.FreeAddress(t)
	certificate, key, err := cert.GenerateSelfSignedCertKey("gateway.e2e", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "tls.crt"), string(certificate))
	write(t, filepath.Join(dir, "tls.key"), string(key))
	write(t, filepath.Join(dir, "token"), "of-root\n")
	write(t, filepath.Join(dir, "policies.yaml"), deleting)
	write(t, filepath.Join(dir, "gateway.yaml"), `
apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
listen: `+listen+`
tls: {certFile: tls.crt, keyFile: tls.key}
admin: {listen: `+admin+`}
upstreams: [{name: cluster, endpoints: [`+behind.url+`], protocol: HTTP2, dialect: Kubernetes, tls: {insecureSkipTLSVerify: true}, tokenFile: token}]
routes: [{pathPrefix: /, upstream: cluster}]
policies: [policies.yaml]
telemetry: {log: {format: JSON, requests: All}}
`)
	d := &door{&cluster{url: "https://" + listen}, filepath.Join(dir, "log"), &behind.made}
	start(t, answers("http://"+admin+"/readyz"), d.log, gateway, "serve", "--config",
		filepath.Join(dir, "gateway.yaml"))
	return d
}

// config is client-go's, for the administrator.
func (d *door) config() *rest.Config {
	return &rest.Config{
		Host: d.url, BearerToken: "of-root", TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: 10_000,
		Burst: 10_000,
	}
}

// checkLog waits until the log has so many requests, and fails the test unless all came by HTTP/2, and none failed.
func (d *door) checkLog(t *testing.T, atLeast int) {
	t.Helper()
	eventually(t, fmt.Sprintf("the log has %d requests", atLeast), func() bool { return d.requests(t) >= atLeast })
}

// requests returns how many requests the log has.
func (d *door) requests(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(d.log)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		var entry struct {
			Version string `json:"network.protocol.version"`
			Code    int    `json:"http.response.status_code"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		switch {
		case strings.Contains(line, "the backend failed"), entry.Code >= http.StatusInternalServerError:
			t.Fatalf("the log has %s", line)
		case entry.Code == 0:
		case entry.Version != "2":
			t.Fatalf("a request did not come by HTTP/2: %s", line)
		default:
			n++
		}
	}
	return n
}

// watchers are watches of the ConfigMaps of a namespace, each of which waits for its first event.
type watchers struct {
	begun, ended sync.WaitGroup
}

// startWatchers begins n watches with client-go's own transport, and waits until the server has answered to all of
// them.
func (d *door) startWatchers(ctx context.Context, t *testing.T, n int, namespace, name string) *watchers {
	t.Helper()
	client, err := rest.HTTPClientFor(d.config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	list, err := kubernetes.NewForConfigOrDie(d.config()).CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	url := d.url + "/api/v1/namespaces/" + namespace + "/configmaps?watch=true&resourceVersion=" + list.ResourceVersion
	w := &watchers{}
	for range n {
		w.begun.Add(1)
		w.ended.Go(func() {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
			if err != nil {
				t.Error(err)
			}
			answer, err := client.Do(r)
			w.begun.Done()
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = answer.Body.Close() }()
			event, err := bufio.NewReader(answer.Body).ReadString('\n')
			if answer.ProtoMajor != 2 || answer.StatusCode != http.StatusOK || err != nil ||
				!strings.Contains(event, `"name":"`+name+`"`) {
				t.Errorf("%s %d, %v: %q", answer.Proto, answer.StatusCode, err, event)
			}
		})
	}
	w.begun.Wait()
	return w
}

// streams returns how many streams at a time the API server says that a connection may have.
func (c *cluster) streams(t *testing.T) int {
	t.Helper()
	//nolint:gosec // a test's own server
	conn, err := tls.Dial("tcp", strings.TrimPrefix(c.url, "https://"),
		&tls.Config{InsecureSkipVerify: true, NextProtos: []string{http2.NextProtoTLS}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	first, err := framer.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	settings, ok := first.(*http2.SettingsFrame)
	if !ok {
		t.Fatalf("the server begins with %v", first)
	}
	n, ok := settings.Value(http2.SettingMaxConcurrentStreams)
	if !ok || n == 0 {
		t.Fatalf("the server allows %d streams, %v", n, ok)
	}
	return int(n)
}

// 1,000 watches of kube-apiserver use as few connections as its streams for each allow, and one more.
func TestWatchesOfAPIServerShareConnections(t *testing.T) {
	c := commonCluster(t)
	c.namespace(t, "shared")
	d := c.startDoor(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	const watches = 1000
	before, streams := d.made.Load(), c.streams(t)
	most := int64((watches+streams-1)/streams + 1)
	w := d.startWatchers(ctx, t, watches, "shared", "seen")
	d.must(t, "", "create", "configmap", "seen", "--namespace=shared")
	w.ended.Wait()
	// Those before the watches belong to the gateway's own questions.
	if n := d.made.Load(); n-before > most {
		t.Errorf("%d watches took %d connections of %d streams, want at most %d", watches, n-before, streams, most)
	} else {
		t.Logf("%d watches took %d connections of %d streams", watches, n-before, streams)
	}
	d.checkLog(t, watches)
}

// A kube-apiserver that leaves connections from time to time is no error to any client.
func TestLeavingAPIServer(t *testing.T) {
	c := startCluster(t, "--goaway-chance=0.02", "--http2-max-streams-per-connection=100")
	d := c.startDoor(t)
	d.namespace(t, "leaving")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	client := kubernetes.NewForConfigOrDie(d.config())
	shared := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("leaving"))
	informer := shared.Core().V1().ConfigMaps().Informer()
	if err := informer.SetWatchErrorHandler(
		func(_ *cache.Reflector, err error) { t.Errorf("the watch: %v", err) }); err != nil {
		t.Fatal(err)
	}
	var added, deleted atomic.Int64
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { added.Add(1) }, DeleteFunc: func(any) { deleted.Add(1) },
	}); err != nil {
		t.Fatal(err)
	}
	shared.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer never synced")
	}
	const watches, workers, rounds = 1000, 8, 25
	d.namespace(t, "watched")
	w := d.startWatchers(ctx, t, watches, "watched", "last")
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for i := range rounds {
				if err := useConfigMap(ctx, client, fmt.Sprintf("leaving-%d-%d", worker, i)); err != nil {
					t.Errorf("worker %d, round %d: %v", worker, i, err)
				}
			}
		})
	}
	all.Go(func() {
		for i := range 5 {
			name := fmt.Sprintf("kubectl-%d", i)
			object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name +
				", namespace: leaving}\ndata: {a: b}\n"
			for _, args := range [][]string{
				{"apply", "-f", "-"}, {"apply", "--server-side", "--force-conflicts", "-f", "-"},
				{"get", "configmap", name, "--namespace=leaving", "-o", "yaml"},
				{"label", "configmap", name, "--namespace=leaving", "x=y"},
				{"delete", "configmap", name, "--namespace=leaving"},
			} {
				if out, ok := d.kubectl(t, object, args...); !ok {
					t.Errorf("kubectl %s: %s", strings.Join(args, " "), out)
				}
			}
		}
	})
	all.Wait()
	d.must(t, "", "create", "configmap", "last", "--namespace=watched")
	w.ended.Wait()
	const objects = workers*rounds + 5
	eventually(t, "the informer has seen all objects come and go",
		func() bool { return deleted.Load() >= objects && added.Load() >= objects })
	// Each connection beyond those that the watches need is there because the server left another one.
	if n := d.made.Load(); n < watches/100+10 {
		t.Errorf("%d connections were made: the server left too few", n)
	} else {
		t.Logf("%d connections were made", n)
	}
	d.checkLog(t, watches+workers*rounds*8)
}

// useConfigMap creates an object, reads it, changes and deletes it.
func useConfigMap(ctx context.Context, client kubernetes.Interface, name string) error {
	all := client.CoreV1().ConfigMaps("leaving")
	if _, err := all.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{}); err != nil {
		return err
	}
	for i := range 2 {
		o, err := all.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		o.Data = map[string]string{"round": fmt.Sprint(i)}
		if _, err := all.Update(ctx, o, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if _, err := all.List(ctx, metav1.ListOptions{Limit: 5}); err != nil {
		return err
	}
	if err := all.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if _, err := all.Get(ctx, name, metav1.GetOptions{}); !errors.IsNotFound(err) {
		return fmt.Errorf("a deleted object is answered with %w", err)
	}
	return nil
}
