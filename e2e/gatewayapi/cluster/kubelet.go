package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// The only node.
const (
	nodeName       = "node"
	kubeletPort    = 10250
	kubeletAddress = nodeAddress + ":10250"
)

// A kubelet runs the Pods of the cluster as processes of the machine: each has a network namespace, an address and a
// root folder of its own. It knows what it takes to run the servers of tests: one container, variables, and volumes of
// Secrets and ConfigMaps, which it reads once.
type kubelet struct {
	client  kubernetes.Interface
	network *network
	images  map[string]string // programs by images without tag
	dir     string
	log     *slog.Logger
	logs    *http.Server

	mu      sync.Mutex
	running map[types.NamespacedName]*runningPod
}

type runningPod struct {
	*container
	uid     types.UID
	name    string // of the container
	address string
}

// startKubelet registers the node, and runs Pods until the context ends.
func startKubelet(ctx context.Context, client kubernetes.Interface, n *network, images map[string]string, dir string,
	log *slog.Logger) (*kubelet, error) {
	k := &kubelet{client: client, network: n, images: images, dir: dir, log: log,
		running: map[types.NamespacedName]*runningPod{}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}, Status: corev1.NodeStatus{
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeAddress}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: kubeletPort}},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
			Reason: "KubeletReady"}},
	}}
	if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	var err error
	if k.logs, err = k.serveLogs(); err != nil {
		return nil, err
	}
	return k, k.watch(ctx)
}

// watch has each Pod looked at that changes.
func (k *kubelet) watch(ctx context.Context) error {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](
		20*time.Millisecond, time.Second))
	factory := informers.NewSharedInformerFactory(k.client, 0)
	pods := factory.Core().V1().Pods()
	enqueue := func(o any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
			queue.Add(key)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, o any) { enqueue(o) },
		DeleteFunc: enqueue}
	if _, err := pods.Informer().AddEventHandler(handler); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	go func() {
		<-ctx.Done()
		queue.ShutDown()
	}()
	for range 4 {
		go func() {
			for key, isOver := queue.Get(); !isOver; key, isOver = queue.Get() {
				namespace, name, _ := cache.SplitMetaNamespaceKey(key)
				pod, err := pods.Lister().Pods(namespace).Get(name)
				switch {
				case apierrors.IsNotFound(err):
					k.end(types.NamespacedName{Namespace: namespace, Name: name})
					err = nil
				case err == nil:
					err = k.sync(ctx, pod)
				}
				if err != nil && ctx.Err() == nil {
					k.log.Warn("The Pod is tried again.", "pod", key, "error", err)
					queue.AddRateLimited(key)
				} else {
					queue.Forget(key)
				}
				queue.Done(key)
			}
		}()
	}
	return nil
}

// sync does with a Pod what is next.
func (k *kubelet) sync(ctx context.Context, pod *corev1.Pod) error {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	switch {
	case pod.DeletionTimestamp != nil:
		k.end(key)
		at := int64(0)
		err := k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name,
			metav1.DeleteOptions{GracePeriodSeconds: &at, Preconditions: &metav1.Preconditions{UID: &pod.UID}})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return err
	case pod.Spec.NodeName == "":
		return schedule(ctx, k.client, pod)
	case pod.Status.Phase == corev1.PodFailed:
		return nil
	}
	running, err := k.start(ctx, key, pod)
	if err != nil {
		return err
	}
	select {
	case <-running.exited:
		return k.report(ctx, pod, running, corev1.PodFailed)
	case <-running.logs.begun: // servers say that they start
	case <-ctx.Done():
		return nil
	}
	if pod.Status.Phase == corev1.PodRunning {
		return nil
	}
	if err := probe(ctx, pod, running.address); err != nil {
		return err
	}
	return k.report(ctx, pod, running, corev1.PodRunning)
}

// probe returns an error as long as a Pod with a readiness probe is not ready. Once it is, it is not asked again.
func probe(ctx context.Context, pod *corev1.Pod, address string) error {
	p := pod.Spec.Containers[0].ReadinessProbe
	if p == nil || p.HTTPGet == nil {
		return nil
	}
	port := p.HTTPGet.Port.IntValue()
	for _, named := range pod.Spec.Containers[0].Ports {
		if named.Name == p.HTTPGet.Port.String() {
			port = int(named.ContainerPort)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("http://%s:%d%s", address, port, p.HTTPGet.Path), http.NoBody)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the Pod %s/%s is not ready: %s", pod.Namespace, pod.Name, answer.Status)
	}
	return nil
}

// start starts the process of a Pod, if it does not run.
func (k *kubelet) start(ctx context.Context, key types.NamespacedName, pod *corev1.Pod) (*runningPod, error) {
	k.mu.Lock()
	running := k.running[key]
	k.mu.Unlock()
	if running != nil && running.uid == pod.UID {
		return running, nil
	}
	k.end(key)
	spec, err := k.prepare(ctx, pod)
	if err != nil {
		return nil, err
	}
	c, err := k.network.run(spec)
	if err != nil {
		return nil, err
	}
	running = &runningPod{c, pod.UID, pod.Spec.Containers[0].Name, spec.Address}
	k.mu.Lock()
	k.running[key] = running
	k.mu.Unlock()
	return running, nil
}

// end stops the process of a Pod.
func (k *kubelet) end(key types.NamespacedName) {
	k.mu.Lock()
	running := k.running[key]
	delete(k.running, key)
	k.mu.Unlock()
	if running != nil {
		running.stop()
	}
}

// container returns a container that runs, or nil.
func (k *kubelet) container(namespace, pod, name string) *container {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.running[types.NamespacedName{Namespace: namespace, Name: pod}]; p != nil && p.name == name {
		return p.container
	}
	return nil
}

// report writes the status of a Pod.
func (k *kubelet) report(ctx context.Context, pod *corev1.Pod, running *runningPod, phase corev1.PodPhase) error {
	now, isReady := metav1.Now(), corev1.ConditionFalse
	container := corev1.ContainerStatus{Name: running.name, Image: pod.Spec.Containers[0].Image}
	if phase == corev1.PodRunning {
		isReady, container.Ready = corev1.ConditionTrue, true
		container.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
	} else {
		container.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", FinishedAt: now}
	}
	status := corev1.PodStatus{
		Phase: phase, StartTime: &now, HostIP: nodeAddress, PodIP: running.address,
		PodIPs:            []corev1.PodIP{{IP: running.address}},
		ContainerStatuses: []corev1.ContainerStatus{container},
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions,
			corev1.PodCondition{Type: kind, Status: isReady, LastTransitionTime: now})
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = k.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// stop ends all Pods.
func (k *kubelet) stop() {
	_ = k.logs.Close()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, running := range k.running {
		running.container.stop()
	}
}
