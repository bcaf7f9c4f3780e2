package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// A kubelet keeps a node ready and says of its Pods that they run, as the kubelet does, with its requests. It runs
// nothing: the Pods of Jobs succeed at once.
type kubelet struct {
	name   string
	client kubernetes.Interface
}

// run keeps the node until the context ends. It returns the first error that a kubelet would not get over by trying
// again.
func (k *kubelet) run(ctx context.Context) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.name,
		Labels: map[string]string{"kubernetes.io/hostname": k.name}}}
	if _, err := k.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("%s is not registered: %w", k.name, err)
	}
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"),
		corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110")}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	defer queue.ShutDown()
	factory := informers.NewSharedInformerFactoryWithOptions(k.client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", k.name).String()
		}))
	pods := factory.Core().V1().Pods()
	enqueue := func(o any) {
		if key, err := cache.MetaNamespaceKeyFunc(o); err == nil {
			queue.Add(key)
		}
	}
	if _, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: enqueue,
		UpdateFunc: func(_, o any) { enqueue(o) }}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	go func() {
		for {
			key, isOver := queue.Get()
			if isOver {
				return
			}
			namespace, name, _ := cache.SplitMetaNamespaceKey(key)
			if pod, err := pods.Lister().Pods(namespace).Get(name); err == nil && k.sync(ctx, pod) != nil {
				queue.AddRateLimited(key)
			} else {
				queue.Forget(key)
			}
			queue.Done(key)
		}
	}()
	for {
		now := metav1.Now()
		patch, err := json.Marshal(map[string]any{"status": corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
				Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now}},
		}})
		if err != nil {
			return err
		}
		_, err = k.client.CoreV1().Nodes().Patch(ctx, k.name, types.StrategicMergePatchType, patch,
			metav1.PatchOptions{}, "status")
		if err := errors.Join(err, k.renew(ctx)); err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s cannot say that it is ready: %w", k.name, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(3 * time.Second):
		}
	}
}

// renew renews the Lease of the node.
func (k *kubelet) renew(ctx context.Context) error {
	leases, now, seconds := k.client.CoordinationV1().Leases(corev1.NamespaceNodeLease), metav1.NowMicro(), int32(40)
	lease, err := leases.Get(ctx, k.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: k.name},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &k.name, LeaseDurationSeconds: &seconds, RenewTime: &now,
			}}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec.RenewTime = &now
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// sync does with a Pod what is next.
func (k *kubelet) sync(ctx context.Context, pod *corev1.Pod) error {
	pods := k.client.CoreV1().Pods(pod.Namespace)
	if pod.DeletionTimestamp != nil {
		now := int64(0)
		err := pods.Delete(ctx, pod.Name,
			metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID}})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return err
	}
	isJob := metav1.GetControllerOf(pod) != nil && metav1.GetControllerOf(pod).Kind == "Job"
	now := metav1.Now()
	status := corev1.PodStatus{PodIP: address(pod), PodIPs: []corev1.PodIP{{IP: address(pod)}}, StartTime: &now}
	container := corev1.ContainerStatus{Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image}
	isReady := corev1.ConditionTrue
	switch {
	case pod.Status.Phase == corev1.PodPending:
		status.Phase, container.Ready = corev1.PodRunning, true
		container.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
	case pod.Status.Phase == corev1.PodRunning && isJob:
		status.Phase, status.StartTime, isReady = corev1.PodSucceeded, pod.Status.StartTime, corev1.ConditionFalse
		container.State.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed",
			StartedAt: *pod.Status.StartTime, FinishedAt: now}
	default:
		return nil
	}
	status.ContainerStatuses = []corev1.ContainerStatus{container}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions,
			corev1.PodCondition{Type: kind, Status: isReady, LastTransitionTime: now})
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// address returns an address for a Pod that is always the same, and mostly differs from the addresses of other Pods.
func address(pod *corev1.Pod) string {
	h := fnv.New32()
	_, _ = h.Write([]byte(pod.UID))
	sum := h.Sum32()
	return fmt.Sprintf("10.%d.%d.%d", byte(sum>>16), byte(sum>>8), byte(sum)|1)
}
