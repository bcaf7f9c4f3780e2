package mutation

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/admission/gatekeeper/match"
)

// Assign sets a field outside of the metadata.
type Assign struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              AssignSpec      `json:"spec,omitempty"`
	Status            json.RawMessage `json:"status,omitempty"`
}

// AssignSpec says what is assigned, and to what.
type AssignSpec struct {
	ApplyTo    []ApplyTo        `json:"applyTo,omitempty"`
	Match      match.Spec       `json:"match,omitempty"`
	Location   string           `json:"location,omitempty"`
	Parameters AssignParameters `json:"parameters,omitempty"`
}

// AssignParameters are the value and the conditions of an Assign.
type AssignParameters struct {
	PathTests []PathTest  `json:"pathTests,omitempty"`
	Assign    AssignField `json:"assign,omitempty"`
}

// AssignMetadata adds a label or an annotation that is not there.
type AssignMetadata struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              AssignMetadataSpec `json:"spec,omitempty"`
	Status            json.RawMessage    `json:"status,omitempty"`
}

// AssignMetadataSpec says what is added, and to what.
type AssignMetadataSpec struct {
	Match      match.Spec         `json:"match,omitempty"`
	Location   string             `json:"location,omitempty"`
	Parameters MetadataParameters `json:"parameters,omitempty"`
}

// MetadataParameters have the value of an AssignMetadata.
type MetadataParameters struct {
	Assign AssignField `json:"assign,omitempty"`
}

// ModifySet adds values to a list, or takes them out.
type ModifySet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ModifySetSpec   `json:"spec,omitempty"`
	Status            json.RawMessage `json:"status,omitempty"`
}

// ModifySetSpec says which values, and of which list.
type ModifySetSpec struct {
	ApplyTo    []ApplyTo           `json:"applyTo,omitempty"`
	Match      match.Spec          `json:"match,omitempty"`
	Location   string              `json:"location,omitempty"`
	Parameters ModifySetParameters `json:"parameters,omitempty"`
}

// ModifySetParameters are the values and the conditions of a ModifySet.
type ModifySetParameters struct {
	PathTests []PathTest `json:"pathTests,omitempty"`
	Operation string     `json:"operation,omitempty"`
	Values    struct {
		FromList []json.RawMessage `json:"fromList,omitempty"`
	} `json:"values,omitempty"`
}

// AssignImage sets parts of the name of an image.
type AssignImage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              AssignImageSpec `json:"spec,omitempty"`
	Status            json.RawMessage `json:"status,omitempty"`
}

// AssignImageSpec says which parts, and of which image.
type AssignImageSpec struct {
	ApplyTo    []ApplyTo             `json:"applyTo,omitempty"`
	Match      match.Spec            `json:"match,omitempty"`
	Location   string                `json:"location,omitempty"`
	Parameters AssignImageParameters `json:"parameters,omitempty"`
}

// AssignImageParameters are the parts and the conditions of an AssignImage.
type AssignImageParameters struct {
	PathTests    []PathTest `json:"pathTests,omitempty"`
	AssignDomain string     `json:"assignDomain,omitempty"`
	AssignPath   string     `json:"assignPath,omitempty"`
	AssignTag    string     `json:"assignTag,omitempty"`
}

// ApplyTo names kinds that have the location, and the operations on them.
type ApplyTo struct {
	Groups     []string `json:"groups,omitempty"`
	Kinds      []string `json:"kinds,omitempty"`
	Versions   []string `json:"versions,omitempty"`
	Operations []string `json:"operations,omitempty"`
}

// PathTest is a condition about what is at the beginning of the location.
type PathTest struct {
	SubPath   string `json:"subPath,omitempty"`
	Condition string `json:"condition,omitempty"`
}

// AssignField is a value: one of its members has it.
type AssignField struct {
	Value        json.RawMessage `json:"value,omitempty"`
	FromMetadata *FromMetadata   `json:"fromMetadata,omitempty"`
	ExternalData json.RawMessage `json:"externalData,omitempty"`
}

// FromMetadata is the name or the namespace of the object.
type FromMetadata struct {
	Field string `json:"field,omitempty"`
}
