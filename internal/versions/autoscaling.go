package versions

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kjson "sigs.k8s.io/json"

	"github.com/admission-gateway/gateway/internal/document"
)

// The HorizontalPodAutoscaler of autoscaling/v1 knows of one metric, how much of the CPU is used. The server keeps all
// others, and what else v1 has no field for, in annotations.
const (
	metricsAnnotation        = "autoscaling.alpha.kubernetes.io/metrics"
	currentMetricsAnnotation = "autoscaling.alpha.kubernetes.io/current-metrics"
	conditionsAnnotation     = "autoscaling.alpha.kubernetes.io/conditions"
	behaviorAnnotation       = "autoscaling.alpha.kubernetes.io/behavior"
	scaleDownAnnotation      = "autoscaling.alpha.kubernetes.io/scale-down-tolerance"
	scaleUpAnnotation        = "autoscaling.alpha.kubernetes.io/scale-up-tolerance"
)

// defaultUtilization is the metric of an autoscaler that names none.
const defaultUtilization = 80

// The behavior in its annotation has the names of the server's own fields.
type (
	behavior     struct{ ScaleUp, ScaleDown *scalingRules }
	scalingRules struct {
		StabilizationWindowSeconds *int32
		SelectPolicy               *autoscalingv2.ScalingPolicySelect
		Policies                   []scalingPolicy
		Tolerance                  *resource.Quantity
	}
	scalingPolicy struct {
		Type                 autoscalingv2.HPAScalingPolicyType
		Value, PeriodSeconds int32
	}
)

// convertAutoscaler converts between autoscaling/v1 and autoscaling/v2.
func convertAutoscaler(d *document.Document, to string) error {
	annotations, err := takeAnnotations(d)
	if err != nil {
		return err
	}
	if to == "v1" {
		return convertParts(d, func(spec *autoscalingv2.HorizontalPodAutoscalerSpec,
			status *autoscalingv2.HorizontalPodAutoscalerStatus) (any, any) {
			older, olderStatus, kept := olderAutoscaler(spec, status)
			putAnnotations(d, kept)
			return older, olderStatus
		})
	}
	return convertParts(d, func(spec *autoscalingv1.HorizontalPodAutoscalerSpec,
		status *autoscalingv1.HorizontalPodAutoscalerStatus) (any, any) {
		return newerAutoscaler(spec, status, annotations)
	})
}

// convertParts converts spec and status. A status that is not there stays away, unless there is something in it then.
func convertParts[Spec, Status any](d *document.Document, convert func(*Spec, *Status) (spec, status any)) error {
	from := struct {
		Spec   Spec   `json:"spec"`
		Status Status `json:"status"`
	}{}
	root := d.Root()
	_, hasStatus := root.Get("status")
	for name, part := range map[string]any{"spec": &from.Spec, "status": &from.Status} {
		n, found := root.Get(name)
		if !found || n.Kind() == document.Null {
			continue
		}
		strict, err := kjson.UnmarshalStrict(n.AppendRaw(nil), part)
		if err = errors.Join(append(strict, err)...); err != nil {
			return fmt.Errorf("its %s cannot be read: %w", name, err)
		}
	}
	spec, status := convert(&from.Spec, &from.Status)
	if err := set(d, "spec", spec); err != nil {
		return err
	}
	if !hasStatus && reflect.ValueOf(status).Elem().IsZero() {
		return nil
	}
	return set(d, "status", status)
}

func set(d *document.Document, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	d.Set(d.Root(), name, text)
	return nil
}

// takeAnnotations takes the annotations out that stand for fields of v2.
func takeAnnotations(d *document.Document) (map[string]string, error) {
	metadata, _ := d.Root().Get("metadata")
	all, _ := metadata.Get("annotations")
	taken := map[string]string{}
	for _, name := range []string{metricsAnnotation, currentMetricsAnnotation, conditionsAnnotation, behaviorAnnotation,
		scaleDownAnnotation, scaleUpAnnotation} {
		n, found := all.Get(name)
		if !found {
			continue
		}
		if n.Kind() != document.String {
			return nil, fmt.Errorf("its annotation '%s' must be a string", name)
		}
		taken[name] = n.Str()
		d.Remove(n)
	}
	if len(taken) > 0 && all.Len() == 0 {
		d.Remove(all)
	}
	return taken, nil
}

// putAnnotations sets the annotations that represent fields of v2.
func putAnnotations(d *document.Document, kept map[string]any) {
	if len(kept) == 0 {
		return
	}
	metadata := member(d, d.Root(), "metadata")
	all := member(d, metadata, "annotations")
	for _, name := range []string{metricsAnnotation, currentMetricsAnnotation, behaviorAnnotation,
		conditionsAnnotation} {
		if value, found := kept[name]; found {
			text, _ := json.Marshal(value) // of plain fields, which have been read as JSON
			d.SetString(all, name, string(text))
		}
	}
}

// member returns an object in an object, and makes it if it is not there.
func member(d *document.Document, in document.Node, name string) document.Node {
	if n, found := in.Get(name); found && n.Kind() == document.Object {
		return n
	}
	return d.Set(in, name, []byte("{}"))
}

func isCPU(t autoscalingv2.MetricSourceType, name corev1.ResourceName) bool {
	return t == autoscalingv2.ResourceMetricSourceType && name == corev1.ResourceCPU
}

// olderAutoscaler turns an autoscaler of v2 into one of v1, and the values of its annotations.
func olderAutoscaler(spec *autoscalingv2.HorizontalPodAutoscalerSpec,
	status *autoscalingv2.HorizontalPodAutoscalerStatus) (
	*autoscalingv1.HorizontalPodAutoscalerSpec, *autoscalingv1.HorizontalPodAutoscalerStatus, map[string]any) {
	older := &autoscalingv1.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv1.CrossVersionObjectReference(spec.ScaleTargetRef), MinReplicas: spec.MinReplicas,
		MaxReplicas: spec.MaxReplicas,
	}
	olderStatus := &autoscalingv1.HorizontalPodAutoscalerStatus{
		ObservedGeneration: status.ObservedGeneration, LastScaleTime: status.LastScaleTime,
		CurrentReplicas: status.CurrentReplicas, DesiredReplicas: status.DesiredReplicas,
	}
	kept := map[string]any{}
	var others []autoscalingv1.MetricSpec
	for _, m := range spec.Metrics {
		if m.Resource != nil && isCPU(m.Type, m.Resource.Name) && m.Resource.Target.AverageUtilization != nil {
			if older.TargetCPUUtilizationPercentage == nil {
				older.TargetCPUUtilizationPercentage = m.Resource.Target.AverageUtilization
			}
			continue
		}
		others = append(others, olderMetric(&m))
	}
	if len(others) > 0 {
		kept[metricsAnnotation] = others
	}
	var current []autoscalingv1.MetricStatus
	for _, m := range status.CurrentMetrics {
		if m.Resource != nil && isCPU(m.Type, m.Resource.Name) && m.Resource.Current.AverageUtilization != nil {
			olderStatus.CurrentCPUUtilizationPercentage = m.Resource.Current.AverageUtilization
		}
		current = append(current, olderStatusOf(&m))
	}
	if len(current) > 0 {
		kept[currentMetricsAnnotation] = current
	}
	if len(status.Conditions) > 0 {
		kept[conditionsAnnotation] = status.Conditions
	}
	if b := spec.Behavior; b != nil {
		kept[behaviorAnnotation] = behavior{rulesOf(b.ScaleUp), rulesOf(b.ScaleDown)}
	}
	return older, olderStatus, kept
}

func rulesOf(r *autoscalingv2.HPAScalingRules) *scalingRules {
	if r == nil {
		return nil
	}
	kept := &scalingRules{StabilizationWindowSeconds: r.StabilizationWindowSeconds, SelectPolicy: r.SelectPolicy,
		Tolerance: r.Tolerance}
	if r.Policies != nil {
		kept.Policies = make([]scalingPolicy, len(r.Policies))
	}
	for i, p := range r.Policies {
		kept.Policies[i] = scalingPolicy(p)
	}
	return kept
}

func (r *scalingRules) read() *autoscalingv2.HPAScalingRules {
	if r == nil {
		return nil
	}
	made := &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: r.StabilizationWindowSeconds,
		SelectPolicy: r.SelectPolicy, Tolerance: r.Tolerance}
	if r.Policies != nil {
		made.Policies = make([]autoscalingv2.HPAScalingPolicy, len(r.Policies))
	}
	for i, p := range r.Policies {
		made.Policies[i] = autoscalingv2.HPAScalingPolicy(p)
	}
	return made
}

// newerAutoscaler turns an autoscaler of v1, with its annotations, into one of v2. As the server
// does, it passes over annotations that cannot be read.
func newerAutoscaler(spec *autoscalingv1.HorizontalPodAutoscalerSpec,
	status *autoscalingv1.HorizontalPodAutoscalerStatus, annotations map[string]string) (
	*autoscalingv2.HorizontalPodAutoscalerSpec, *autoscalingv2.HorizontalPodAutoscalerStatus) {
	newer := &autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(spec.ScaleTargetRef), MinReplicas: spec.MinReplicas,
		MaxReplicas: spec.MaxReplicas,
	}
	newerStatus := &autoscalingv2.HorizontalPodAutoscalerStatus{
		ObservedGeneration: status.ObservedGeneration, LastScaleTime: status.LastScaleTime,
		CurrentReplicas: status.CurrentReplicas, DesiredReplicas: status.DesiredReplicas,
	}
	var others []autoscalingv1.MetricSpec
	if isIn(annotations, metricsAnnotation, &others) {
		for i := range others {
			newer.Metrics = append(newer.Metrics, newerMetric(&others[i]))
		}
	}
	if spec.TargetCPUUtilizationPercentage != nil {
		newer.Metrics = append(newer.Metrics, ofCPU(*spec.TargetCPUUtilizationPercentage))
	}
	if len(newer.Metrics) == 0 {
		newer.Metrics = []autoscalingv2.MetricSpec{ofCPU(defaultUtilization)}
	}
	var b behavior
	if isIn(annotations, behaviorAnnotation, &b) && b != (behavior{}) {
		newer.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: b.ScaleUp.read(),
			ScaleDown: b.ScaleDown.read()}
	}
	var current []autoscalingv1.MetricStatus
	switch {
	case isIn(annotations, currentMetricsAnnotation, &current):
		for i := range current {
			newerStatus.CurrentMetrics = append(newerStatus.CurrentMetrics, newerStatusOf(&current[i]))
		}
	case status.CurrentCPUUtilizationPercentage != nil:
		newerStatus.CurrentMetrics = []autoscalingv2.MetricStatus{{Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricStatus{
				Name:    corev1.ResourceCPU,
				Current: autoscalingv2.MetricValueStatus{AverageUtilization: status.CurrentCPUUtilizationPercentage},
			}}}
	}
	var conditions []autoscalingv2.HorizontalPodAutoscalerCondition
	if isIn(annotations, conditionsAnnotation, &conditions) {
		newerStatus.Conditions = conditions
	}
	return newer, newerStatus
}

// isIn reads an annotation. It reports false if there is none that can be read.
func isIn(annotations map[string]string, name string, into any) bool {
	text, found := annotations[name]
	return found && json.Unmarshal([]byte(text), into) == nil
}

func ofCPU(utilization int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType,
				AverageUtilization: &utilization},
		}}
}

func orZero(q *resource.Quantity) resource.Quantity {
	if q == nil {
		return resource.Quantity{}
	}
	return *q
}

func olderMetric(m *autoscalingv2.MetricSpec) autoscalingv1.MetricSpec {
	older := autoscalingv1.MetricSpec{Type: autoscalingv1.MetricSourceType(m.Type)}
	if s := m.Object; s != nil {
		older.Object = &autoscalingv1.ObjectMetricSource{
			Target: autoscalingv1.CrossVersionObjectReference(s.DescribedObject), MetricName: s.Metric.Name,
			Selector:    s.Metric.Selector,
			TargetValue: orZero(s.Target.Value), AverageValue: s.Target.AverageValue,
		}
	}
	if s := m.Pods; s != nil {
		older.Pods = &autoscalingv1.PodsMetricSource{MetricName: s.Metric.Name, Selector: s.Metric.Selector,
			TargetAverageValue: orZero(s.Target.AverageValue)}
	}
	if s := m.Resource; s != nil {
		older.Resource = &autoscalingv1.ResourceMetricSource{Name: s.Name,
			TargetAverageUtilization: s.Target.AverageUtilization, TargetAverageValue: s.Target.AverageValue}
	}
	if s := m.ContainerResource; s != nil {
		older.ContainerResource = &autoscalingv1.ContainerResourceMetricSource{
			Name: s.Name, Container: s.Container, TargetAverageUtilization: s.Target.AverageUtilization,
			TargetAverageValue: s.Target.AverageValue,
		}
	}
	if s := m.External; s != nil {
		older.External = &autoscalingv1.ExternalMetricSource{
			MetricName: s.Metric.Name, MetricSelector: s.Metric.Selector, TargetValue: s.Target.Value,
			TargetAverageValue: s.Target.AverageValue,
		}
	}
	return older
}

func newerMetric(m *autoscalingv1.MetricSpec) autoscalingv2.MetricSpec {
	newer := autoscalingv2.MetricSpec{Type: autoscalingv2.MetricSourceType(m.Type)}
	if s := m.Object; s != nil {
		target := autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: &s.TargetValue}
		if s.AverageValue != nil {
			target.Type, target.AverageValue = autoscalingv2.AverageValueMetricType, s.AverageValue
			if s.TargetValue.IsZero() {
				target.Value = nil
			}
		}
		newer.Object = &autoscalingv2.ObjectMetricSource{
			DescribedObject: autoscalingv2.CrossVersionObjectReference(s.Target),
			Metric:          autoscalingv2.MetricIdentifier{Name: s.MetricName, Selector: s.Selector}, Target: target,
		}
	}
	if s := m.Pods; s != nil {
		newer.Pods = &autoscalingv2.PodsMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: s.MetricName, Selector: s.Selector},
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType,
				AverageValue: &s.TargetAverageValue},
		}
	}
	if s := m.Resource; s != nil {
		newer.Resource = &autoscalingv2.ResourceMetricSource{Name: s.Name,
			Target: ofResource(s.TargetAverageUtilization, s.TargetAverageValue)}
	}
	if s := m.ContainerResource; s != nil {
		newer.ContainerResource = &autoscalingv2.ContainerResourceMetricSource{Name: s.Name, Container: s.Container,
			Target: ofResource(s.TargetAverageUtilization, s.TargetAverageValue)}
	}
	if s := m.External; s != nil {
		target := autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: s.TargetValue,
			AverageValue: s.TargetAverageValue}
		if s.TargetValue == nil {
			target.Type = autoscalingv2.AverageValueMetricType
		}
		newer.External = &autoscalingv2.ExternalMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: s.MetricName,
			Selector: s.MetricSelector}, Target: target}
	}
	return newer
}

func ofResource(utilization *int32, value *resource.Quantity) autoscalingv2.MetricTarget {
	target := autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: utilization,
		AverageValue: value}
	if utilization == nil {
		target.Type = autoscalingv2.AverageValueMetricType
	}
	return target
}

func olderStatusOf(m *autoscalingv2.MetricStatus) autoscalingv1.MetricStatus {
	older := autoscalingv1.MetricStatus{Type: autoscalingv1.MetricSourceType(m.Type)}
	if s := m.Object; s != nil {
		older.Object = &autoscalingv1.ObjectMetricStatus{
			Target: autoscalingv1.CrossVersionObjectReference(s.DescribedObject), MetricName: s.Metric.Name,
			Selector:     s.Metric.Selector,
			CurrentValue: orZero(s.Current.Value), AverageValue: s.Current.AverageValue,
		}
	}
	if s := m.Pods; s != nil {
		older.Pods = &autoscalingv1.PodsMetricStatus{MetricName: s.Metric.Name, Selector: s.Metric.Selector,
			CurrentAverageValue: orZero(s.Current.AverageValue)}
	}
	if s := m.Resource; s != nil {
		older.Resource = &autoscalingv1.ResourceMetricStatus{
			Name: s.Name, CurrentAverageUtilization: s.Current.AverageUtilization,
			CurrentAverageValue: orZero(s.Current.AverageValue),
		}
	}
	if s := m.ContainerResource; s != nil {
		older.ContainerResource = &autoscalingv1.ContainerResourceMetricStatus{
			Name: s.Name, Container: s.Container, CurrentAverageUtilization: s.Current.AverageUtilization,
			CurrentAverageValue: orZero(s.Current.AverageValue),
		}
	}
	if s := m.External; s != nil {
		older.External = &autoscalingv1.ExternalMetricStatus{
			MetricName: s.Metric.Name, MetricSelector: s.Metric.Selector, CurrentValue: orZero(s.Current.Value),
			CurrentAverageValue: s.Current.AverageValue,
		}
	}
	return older
}

func newerStatusOf(m *autoscalingv1.MetricStatus) autoscalingv2.MetricStatus {
	newer := autoscalingv2.MetricStatus{Type: autoscalingv2.MetricSourceType(m.Type)}
	if s := m.Object; s != nil {
		newer.Object = &autoscalingv2.ObjectMetricStatus{
			DescribedObject: autoscalingv2.CrossVersionObjectReference(s.Target),
			Metric:          autoscalingv2.MetricIdentifier{Name: s.MetricName, Selector: s.Selector},
			Current:         autoscalingv2.MetricValueStatus{Value: &s.CurrentValue, AverageValue: s.AverageValue},
		}
	}
	if s := m.Pods; s != nil {
		newer.Pods = &autoscalingv2.PodsMetricStatus{
			Metric:  autoscalingv2.MetricIdentifier{Name: s.MetricName, Selector: s.Selector},
			Current: autoscalingv2.MetricValueStatus{AverageValue: &s.CurrentAverageValue},
		}
	}
	if s := m.Resource; s != nil {
		newer.Resource = &autoscalingv2.ResourceMetricStatus{
			Name: s.Name, Current: autoscalingv2.MetricValueStatus{AverageValue: &s.CurrentAverageValue,
				AverageUtilization: s.CurrentAverageUtilization},
		}
	}
	if s := m.ContainerResource; s != nil {
		newer.ContainerResource = &autoscalingv2.ContainerResourceMetricStatus{
			Name: s.Name, Container: s.Container,
			Current: autoscalingv2.MetricValueStatus{AverageValue: &s.CurrentAverageValue,
				AverageUtilization: s.CurrentAverageUtilization},
		}
	}
	if s := m.External; s != nil {
		newer.External = &autoscalingv2.ExternalMetricStatus{
			Metric:  autoscalingv2.MetricIdentifier{Name: s.MetricName, Selector: s.MetricSelector},
			Current: autoscalingv2.MetricValueStatus{Value: &s.CurrentValue, AverageValue: s.CurrentAverageValue},
		}
	}
	return newer
}
