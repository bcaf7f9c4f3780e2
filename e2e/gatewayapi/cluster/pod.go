package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// prepare makes the root folder of a Pod, and returns what its container is.
func (k *kubelet) prepare(ctx context.Context, pod *corev1.Pod) (containerSpec, error) {
	if len(pod.Spec.Containers) != 1 {
		return containerSpec{}, fmt.Errorf("the Pod %s/%s has %d containers, want one", pod.Namespace, pod.Name,
			len(pod.Spec.Containers))
	}
	c := &pod.Spec.Containers[0]
	image, _, _ := strings.Cut(c.Image, ":")
	program, ok := k.images[image]
	if !ok {
		return containerSpec{}, fmt.Errorf("there is no program of the image %s", c.Image)
	}
	if c.Command != nil {
		return containerSpec{}, fmt.Errorf("the Pod %s/%s has a command of its own", pod.Namespace, pod.Name)
	}
	spec := containerSpec{Root: k.folder(pod.UID), Program: program, Arguments: c.Args, Address: k.network.next(),
		Host: pod.Name}
	// The address of the API server itself: no Service has an address in this cluster.
	spec.Environment = []string{"KUBERNETES_SERVICE_HOST=" + nodeAddress, "KUBERNETES_SERVICE_PORT=" + serverPort}
	if err := os.MkdirAll(spec.Root, 0o700); err != nil {
		return containerSpec{}, err
	}
	if program == Pause {
		return spec, nil
	}
	if err := place(program, filepath.Join(spec.Root, filepath.Base(program))); err != nil {
		return containerSpec{}, err
	}
	for i := range c.VolumeMounts {
		if err := k.mount(ctx, pod, &c.VolumeMounts[i], spec.Root); err != nil {
			return containerSpec{}, err
		}
	}
	for i := range c.Env {
		value, err := valueOf(pod, &c.Env[i])
		if err != nil {
			return containerSpec{}, err
		}
		spec.Environment = append(spec.Environment, c.Env[i].Name+"="+value)
	}
	return spec, nil
}

// folder returns the root folder of a Pod.
func (k *kubelet) folder(pod types.UID) string { return filepath.Join(k.dir, string(pod)) }

// place puts a program into a folder: a link if the file system is the same, and else a copy.
func place(program, file string) error {
	if err := os.Link(program, file); err == nil || os.IsExist(err) {
		return nil
	}
	from, err := os.Open(program)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o700)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, from); err != nil {
		_ = to.Close()
		return err
	}
	return to.Close()
}

// valueOf returns the value of a variable.
func valueOf(pod *corev1.Pod, v *corev1.EnvVar) (string, error) {
	if v.ValueFrom == nil {
		return v.Value, nil
	}
	value, err := fieldOf(pod, v.ValueFrom.FieldRef)
	if err != nil {
		return "", fmt.Errorf("the variable %s: %w", v.Name, err)
	}
	return value, nil
}

// fieldOf returns the value of a field of a Pod.
func fieldOf(pod *corev1.Pod, f *corev1.ObjectFieldSelector) (string, error) {
	if f != nil {
		switch f.FieldPath {
		case "metadata.name":
			return pod.Name, nil
		case "metadata.namespace":
			return pod.Namespace, nil
		}
	}
	return "", fmt.Errorf("the Pod %s/%s asks for a value that is not known here", pod.Namespace, pod.Name)
}
