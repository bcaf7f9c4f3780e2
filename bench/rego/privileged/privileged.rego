# No container is privileged, as K8sPSPPrivilegedContainer of Gatekeeper's library has it.
package privileged

violation contains {"msg": msg, "details": {}} if {
	some container in containers
	not is_exempt(container)
	container.securityContext.privileged
	msg := sprintf("Privileged container is not allowed: %v, securityContext: %v", [container.name, container.securityContext])
}

containers contains c if some c in input.review.object.spec.template.spec.containers

containers contains c if some c in input.review.object.spec.template.spec.initContainers

is_exempt(container) if {
	some image in input.parameters.exemptImages
	endswith(image, "*")
	startswith(container.image, trim_suffix(image, "*"))
}

is_exempt(container) if container.image in input.parameters.exemptImages
