# Labels are there and have the right form, as K8sRequiredLabels of Gatekeeper's library has it.
package labels

violation contains {"msg": msg, "details": {"missing_labels": missing}} if {
	provided := {label | input.review.object.metadata.labels[label]}
	required := {label | label := input.parameters.labels[_].key}
	missing := required - provided
	count(missing) > 0
	msg := sprintf("you must provide labels: %v", [missing])
}

violation contains {"msg": msg} if {
	value := input.review.object.metadata.labels[key]
	some expected in input.parameters.labels
	expected.key == key
	expected.allowedRegex != ""
	not regex.match(expected.allowedRegex, value)
	msg := sprintf("Label <%v: %v> does not satisfy allowed regex: %v", [key, value, expected.allowedRegex])
}
