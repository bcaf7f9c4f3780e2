package ingress

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A fault is why something is not as it should be, in a reason of the API and in words; the zero value is no fault.
type fault struct{ reason, message string }

func (f fault) is() bool { return f.reason != "" }

// first returns the first of faults that is one.
func first(all ...fault) fault {
	for _, f := range all {
		if f.is() {
			return f
		}
	}
	return fault{}
}

// holds returns a condition of positive polarity: true with a reason, unless there is a fault.
func holds[T, R ~string](kind T, reason R, f fault) metav1.Condition {
	if f.is() {
		return metav1.Condition{Type: string(kind), Status: metav1.ConditionFalse, Reason: f.reason, Message: f.message}
	}
	return metav1.Condition{Type: string(kind), Status: metav1.ConditionTrue, Reason: string(reason)}
}

// isSo returns a condition that is true, with a reason.
func isSo[T, R ~string](kind T, reason R, message string) metav1.Condition {
	return metav1.Condition{Type: string(kind), Status: metav1.ConditionTrue, Reason: string(reason), Message: message}
}

// isNot returns a condition that is false, with a reason.
func isNot[T, R ~string](kind T, reason R, message string) metav1.Condition {
	return metav1.Condition{Type: string(kind), Status: metav1.ConditionFalse, Reason: string(reason), Message: message}
}

// merged puts wanted conditions in place of those that an object has. Conditions of types that are not the controller's
// own stay. A condition has changed if its status has.
func merged(has, wanted []metav1.Condition, own []string, generation int64, now time.Time) []metav1.Condition {
	all := make([]metav1.Condition, 0, len(has)+len(wanted))
	for _, w := range wanted {
		w.ObservedGeneration, w.LastTransitionTime = generation, metav1.NewTime(now.Truncate(time.Second))
		for i := range has {
			if has[i].Type == w.Type && has[i].Status == w.Status {
				w.LastTransitionTime = has[i].LastTransitionTime
			}
		}
		all = append(all, w)
	}
	for _, h := range has {
		if !slices.Contains(own, h.Type) &&
			!slices.ContainsFunc(wanted, func(w metav1.Condition) bool { return w.Type == h.Type }) {
			all = append(all, h)
		}
	}
	return all
}

// sameConditions reports whether two lists say the same.
func sameConditions(a, b []metav1.Condition) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.Condition) bool {
		xt, yt := x.LastTransitionTime, y.LastTransitionTime
		x.LastTransitionTime, y.LastTransitionTime = metav1.Time{}, metav1.Time{}
		return x == y && xt.Equal(&yt)
	})
}
