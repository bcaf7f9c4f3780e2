# What a proxy would ask OPA: what the three policies in ../rego find, with their parameters.
package decision

violation contains v if {
	some v in data.repos.violation with input.parameters as {"repos": ["registry.example.com/"]}
}

violation contains v if {
	some v in data.labels.violation with input.parameters as {"labels": [{"key": "team", "allowedRegex": "^[a-z]+$"}, {"key": "app"}]}
}

violation contains v if {
	some v in data.privileged.violation with input.parameters as {"exemptImages": ["registry.example.com/system/*"]}
}
