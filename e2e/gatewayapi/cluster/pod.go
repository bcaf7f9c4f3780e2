package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// prepare makes the root folder of a Pod, and returns what its container is.
func (k *kubelet) prepare(ctx context.Context, pod *corev1.Pod) (containerSpec, error) {
	if len(pod.Spec.Containers) != 1 {
		return containerSpec{}, fmt.Errorf("the Pod %s/%s has %d containers, want one", pod.Namespace, pod.Name, len(pod.Spec.Containers))
	}
	c := &pod.Spec.Containers[0]
	image, _, _ := strings.Cut(c.Image, ":")
	program, ok := k.images[image]
	if !ok {
		return containerSpec{}, fmt.Errorf("there is no program of the image %s", c.Image)
	}
	spec := containerSpec{Root: k.folder(pod.UID), Program: program, Address: k.network.next()}
	if err := os.MkdirAll(spec.Root, 0o700); err != nil {
		return containerSpec{}, err
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

// mount writes the files of a volume.
func (k *kubelet) mount(ctx context.Context, pod *corev1.Pod, m *corev1.VolumeMount, root string) error {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Name != m.Name {
			continue
		}
		data, items, err := k.dataOf(ctx, pod, v)
		if err != nil {
			return err
		}
		if items == nil {
			for key := range data {
				items = append(items, corev1.KeyToPath{Key: key, Path: key})
			}
		}
		folder := filepath.Join(root, m.MountPath)
		for _, item := range items {
			file := filepath.Join(folder, item.Path)
			content, ok := data[item.Key]
			if !ok {
				return fmt.Errorf("the volume %s of the Pod %s/%s has no %s", v.Name, pod.Namespace, pod.Name, item.Key)
			}
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				return err
			}
			if err := os.WriteFile(file, content, 0o600); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("the Pod %s/%s has no volume %s", pod.Namespace, pod.Name, m.Name)
}

// dataOf returns what a volume has, and which of it is asked for.
func (k *kubelet) dataOf(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) (map[string][]byte, []corev1.KeyToPath, error) {
	switch {
	case v.Secret != nil:
		secret, err := k.client.CoreV1().Secrets(pod.Namespace).Get(ctx, v.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return nil, nil, err
		}
		return secret.Data, v.Secret.Items, nil
	case v.ConfigMap != nil:
		config, err := k.client.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return nil, nil, err
		}
		data := config.BinaryData
		if data == nil {
			data = map[string][]byte{}
		}
		for key, value := range config.Data {
			data[key] = []byte(value)
		}
		return data, v.ConfigMap.Items, nil
	}
	return nil, nil, fmt.Errorf("the volume %s of the Pod %s/%s is neither a Secret nor a ConfigMap", v.Name, pod.Namespace, pod.Name)
}

// valueOf returns the value of a variable.
func valueOf(pod *corev1.Pod, v *corev1.EnvVar) (string, error) {
	if v.ValueFrom == nil {
		return v.Value, nil
	}
	if f := v.ValueFrom.FieldRef; f != nil {
		switch f.FieldPath {
		case "metadata.name":
			return pod.Name, nil
		case "metadata.namespace":
			return pod.Namespace, nil
		}
	}
	return "", fmt.Errorf("the value of %s in the Pod %s/%s is of a kind that is not known here", v.Name, pod.Namespace, pod.Name)
}
