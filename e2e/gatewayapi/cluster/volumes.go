package cluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mount writes the files of a volume below a folder.
func (k *kubelet) mount(ctx context.Context, pod *corev1.Pod, m *corev1.VolumeMount, root string) error {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Name != m.Name {
			continue
		}
		files, err := k.filesOf(ctx, pod, v)
		if err != nil {
			return fmt.Errorf("the volume %s of the Pod %s/%s: %w", v.Name, pod.Namespace, pod.Name, err)
		}
		folder := filepath.Join(root, m.MountPath)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		for name, content := range files {
			file := filepath.Join(folder, name)
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

// filesOf returns the files of a volume.
func (k *kubelet) filesOf(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) (map[string][]byte, error) {
	switch {
	case v.EmptyDir != nil:
		return nil, nil
	case v.Secret != nil:
		return k.filesOfSecret(ctx, pod.Namespace, v.Secret.SecretName, v.Secret.Items)
	case v.ConfigMap != nil:
		return k.filesOfConfigMap(ctx, pod.Namespace, v.ConfigMap.Name, v.ConfigMap.Items)
	case v.Projected != nil:
		files := map[string][]byte{}
		for i := range v.Projected.Sources {
			more, err := k.filesOfSource(ctx, pod, &v.Projected.Sources[i])
			if err != nil {
				return nil, err
			}
			maps.Copy(files, more)
		}
		return files, nil
	}
	return nil, fmt.Errorf("its kind is not known here")
}

func (k *kubelet) filesOfSource(ctx context.Context, pod *corev1.Pod,
	s *corev1.VolumeProjection) (map[string][]byte, error) {
	switch {
	case s.Secret != nil:
		return k.filesOfSecret(ctx, pod.Namespace, s.Secret.Name, s.Secret.Items)
	case s.ConfigMap != nil:
		return k.filesOfConfigMap(ctx, pod.Namespace, s.ConfigMap.Name, s.ConfigMap.Items)
	case s.ServiceAccountToken != nil:
		token, err := k.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName,
			&authenticationv1.TokenRequest{
				Spec: authenticationv1.TokenRequestSpec{
					ExpirationSeconds: s.ServiceAccountToken.ExpirationSeconds,
					BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod",
						Name: pod.Name,
						UID:  pod.UID},
				},
			}, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		return map[string][]byte{s.ServiceAccountToken.Path: []byte(token.Status.Token)}, nil
	case s.DownwardAPI != nil:
		files := map[string][]byte{}
		for _, item := range s.DownwardAPI.Items {
			value, err := fieldOf(pod, item.FieldRef)
			if err != nil {
				return nil, err
			}
			files[item.Path] = []byte(value)
		}
		return files, nil
	}
	return nil, fmt.Errorf("the kind of a source is not known here")
}

func (k *kubelet) filesOfSecret(ctx context.Context, namespace, name string,
	items []corev1.KeyToPath) (map[string][]byte, error) {
	secret, err := k.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return pick(secret.Data, items)
}

func (k *kubelet) filesOfConfigMap(ctx context.Context, namespace, name string,
	items []corev1.KeyToPath) (map[string][]byte, error) {
	config, err := k.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	data := maps.Clone(config.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for key, value := range config.Data {
		data[key] = []byte(value)
	}
	return pick(data, items)
}

// pick returns the files that items make of data: a file for each key if there are no items.
func pick(data map[string][]byte, items []corev1.KeyToPath) (map[string][]byte, error) {
	if items == nil {
		return data, nil
	}
	files := map[string][]byte{}
	for _, item := range items {
		content, ok := data[item.Key]
		if !ok {
			return nil, fmt.Errorf("there is no key %s", item.Key)
		}
		files[item.Path] = content
	}
	return files, nil
}
