package gatekeeper

import (
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/admission/gatekeeper/match"
)

// ConstraintTemplate defines a kind of constraints.
type ConstraintTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              TemplateSpec    `json:"spec,omitempty"`
	Status            json.RawMessage `json:"status,omitempty"`
}

// TemplateSpec has the form of the constraints and what they check.
type TemplateSpec struct {
	CRD struct {
		Spec CRDSpec `json:"spec,omitempty"`
	} `json:"crd,omitempty"`
	Targets []Target `json:"targets,omitempty"`
}

// CRDSpec names the kind of the constraints and has the schema of their parameters.
type CRDSpec struct {
	Names struct {
		Kind       string   `json:"kind,omitempty"`
		ShortNames []string `json:"shortNames,omitempty"`
	} `json:"names,omitempty"`
	Validation *Validation `json:"validation,omitempty"`
}

// Validation has the schema of the parameters.
type Validation struct {
	OpenAPIV3Schema *apiextensionsv1.JSONSchemaProps `json:"openAPIV3Schema,omitempty"`
	LegacySchema    *bool                            `json:"legacySchema,omitempty"`
}

// Target is the code for a target. There is one, Gatekeeper's own.
type Target struct {
	Target     string   `json:"target,omitempty"`
	Rego       string   `json:"rego,omitempty"`
	Libs       []string `json:"libs,omitempty"`
	Code       []Code   `json:"code,omitempty"`
	Operations []string `json:"operations,omitempty"`
}

// Code is the code for an engine.
type Code struct {
	Engine string          `json:"engine,omitempty"`
	Source json.RawMessage `json:"source,omitempty"`
}

// RegoSource is the source of the engine Rego.
type RegoSource struct {
	Rego    string   `json:"rego,omitempty"`
	Version string   `json:"version,omitempty"`
	Libs    []string `json:"libs,omitempty"`
}

// CELSource is the source of the engine K8sNativeValidation.
type CELSource struct {
	Validations     []CELValidation `json:"validations,omitempty"`
	FailurePolicy   *string         `json:"failurePolicy,omitempty"`
	MatchConditions []CELNamed      `json:"matchCondition,omitempty"`
	Variables       []CELNamed      `json:"variables,omitempty"`
	GenerateVAP     *bool           `json:"generateVAP,omitempty"`
}

// CELValidation is an expression that must be true, and the message if it is not.
type CELValidation struct {
	Expression        string `json:"expression,omitempty"`
	Message           string `json:"message,omitempty"`
	MessageExpression string `json:"messageExpression,omitempty"`
}

// CELNamed is a match condition or a variable.
type CELNamed struct {
	Name       string `json:"name,omitempty"`
	Expression string `json:"expression,omitempty"`
}

// ConstraintSpec is the part of a constraint that does not depend on its template.
type ConstraintSpec struct {
	Match                    match.Spec                `json:"match,omitempty"`
	EnforcementAction        string                    `json:"enforcementAction,omitempty"`
	ScopedEnforcementActions []ScopedEnforcementAction `json:"scopedEnforcementActions,omitempty"`
}

// ScopedEnforcementAction is an action for some enforcement points.
type ScopedEnforcementAction struct {
	Action            string `json:"action,omitempty"`
	EnforcementPoints []struct {
		Name string `json:"name,omitempty"`
	} `json:"enforcementPoints,omitempty"`
}

// Config is Gatekeeper's configuration.
type Config struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ConfigSpec      `json:"spec,omitempty"`
	Status            json.RawMessage `json:"status,omitempty"`
}

// ConfigSpec names the objects that Rego reads as data.inventory, and the namespaces left alone.
type ConfigSpec struct {
	Sync struct {
		SyncOnly []Kind `json:"syncOnly,omitempty"`
	} `json:"sync,omitempty"`
	Validation struct {
		Traces []Trace `json:"traces,omitempty"`
	} `json:"validation,omitempty"`
	Match     []Exemption `json:"match,omitempty"`
	Readiness struct {
		StatsEnabled bool `json:"statsEnabled,omitempty"`
	} `json:"readiness,omitempty"`
}

// Trace asks for traces of requests.
type Trace struct {
	User string `json:"user,omitempty"`
	Kind Kind   `json:"kind,omitempty"`
	Dump string `json:"dump,omitempty"`
}

// Exemption names namespaces that some processes leave alone.
type Exemption struct {
	Processes          []string         `json:"processes,omitempty"`
	ExcludedNamespaces []match.Wildcard `json:"excludedNamespaces,omitempty"`
}

// Kind is a kind in a version.
type Kind struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version,omitempty"`
	Kind    string `json:"kind,omitempty"`
}

// SyncSet names more objects that Rego reads as data.inventory.
type SyncSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		GVKs []Kind `json:"gvks,omitempty"`
	} `json:"spec,omitempty"`
	Status json.RawMessage `json:"status,omitempty"`
}
