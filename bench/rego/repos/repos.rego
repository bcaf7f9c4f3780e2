# Images come from known registries, as K8sAllowedRepos of Gatekeeper's library has it.
package repos

violation contains {"msg": msg} if {
	some container in input.review.object.spec.template.spec.containers
	not startswith_any(container.image, input.parameters.repos)
	msg := sprintf("container <%v> has an invalid image repo <%v>, allowed repos are %v", [container.name, container.image, input.parameters.repos])
}

violation contains {"msg": msg} if {
	some container in input.review.object.spec.template.spec.initContainers
	not startswith_any(container.image, input.parameters.repos)
	msg := sprintf("initContainer <%v> has an invalid image repo <%v>, allowed repos are %v", [container.name, container.image, input.parameters.repos])
}

startswith_any(text, prefixes) if {
	some prefix in prefixes
	startswith(text, prefix)
}
