package lint

import "github.com/admission-gateway/gateway/policies/finding"

// A rule is one of the conventions.
type rule struct {
	id, why, section string
	severity         finding.Severity
}

// The rules, by the ids of the conventions that they check. Advice that an author may have good
// reasons not to follow has the severity of wording.
var (
	kindNames     = &rule{"LINT-1/kind", "Kinds are CamelCase and singular, so that clients can derive other names of them.", "Types (Kinds)", finding.Warning}
	resourceNames = &rule{"LINT-1/resource", "Resources are lower case and plural: they stand in URLs.",
		"Types (Kinds)", finding.Warning}
	groupNames = &rule{"LINT-1/group", "Groups are DNS subdomains and versions are DNS labels: they stand in URLs.",
		"Types (Kinds)", finding.Warning}

	fieldNames = &rule{"LINT-2/field-name", "JSON field names are camelCase, as all clients expect them.",
		"Naming conventions", finding.Warning}
	acronymCase = &rule{"LINT-2/acronym", "All letters of an acronym have the same case.", "Naming conventions",
		finding.Warning}
	imperativeNames = &rule{"LINT-2/imperative",
		"Fields declare a state; a command says nothing of what holds after it.", "Naming conventions", finding.Wording}
	controllerKinds = &rule{"LINT-2/controller",
		"A kind is named after what it is, not after the controller that acts on it.", "Naming conventions",
		finding.Warning}
	abbreviatedNames = &rule{"LINT-2/abbreviation", "Abbreviations are guessed, and guessed differently.",
		"Naming conventions", finding.Wording}
	booleanPrefixes = &rule{"LINT-2/is", "A boolean is named by the property: `enabled`, not `isEnabled`.",
		"Naming conventions", finding.Warning}
	timeNames     = &rule{"LINT-2/stamp", "Times are named `somethingTime`.", "Naming conventions", finding.Warning}
	durationUnits = &rule{"LINT-3/duration", "Durations are integers whose names end in `Seconds`: a unit that is not said is guessed.", "Units", finding.Warning}
	periodNames   = &rule{"LINT-3/period", "Periodic waiting is named `fooPeriodSeconds`.", "Naming conventions",
		finding.Wording}
	floatingPoint = &rule{"LINT-4/float", "Floating-point values change from one client to the next.",
		"Primitive types", finding.Warning}
	unsignedIntegers = &rule{"LINT-4/unsigned", "Unsigned integers are not supported by all clients.",
		"Primitive types", finding.Warning}
	integerBounds  = &rule{"LINT-4/bounds", "Integers without bounds are read differently beyond 2^53, and nobody tests them.", "Primitive types", finding.Wording}
	booleanFields  = &rule{"LINT-4/boolean", "Many ideas start as a boolean and become a small set of alternatives: a policy string can grow.", "Primitive types", finding.Wording}
	enumValues     = &rule{"LINT-5/enum", "Values of enumerations are CamelCase.", "Constants", finding.Warning}
	objectMaps     = &rule{"LINT-6/map", "Sub-objects are lists with a `name`: patches and clients treat the keys of maps as data.", "Lists of named subobjects preferred over maps", finding.Warning}
	listTypes      = &rule{"LINT-6/list-type", "A list without a type is replaced whole by server-side apply, whoever owns its items.", "Lists of named subobjects preferred over maps", finding.Warning}
	referenceNames = &rule{"LINT-7/name", "A reference is named `fooRef`, `fooRefs` or `fooName`.",
		"Naming of the reference field", finding.Wording}
	crossReferences   = &rule{"LINT-7/namespace", "A reference into another namespace lets its author reach what they may not read.", "Object references", finding.Warning}
	kindsWithoutGroup = &rule{"LINT-7/group", "A kind without a group names several kinds.", "Kind vs. Resource",
		finding.Warning}
	requiredValue = &rule{"LINT-8/required-default", "A field with a default is optional.",
		"What May Be Defaulted", finding.Warning}
	unionDefault = &rule{"LINT-8/union-default",
		"A default for a member of a union sets a member that nobody chose.", "What May Be Defaulted", finding.Warning}
	itemsMembers = &rule{"LINT-8/items", "`items` is the member of lists; other kinds name what they hold.",
		"Types (Kinds)", finding.Warning}
	statusSubresources = &rule{"LINT-8/status",
		"A status without its subresource can be written by whoever writes the spec.", "Spec and Status",
		finding.Warning}
	phaseFields = &rule{"LINT-8/phase", "A phase cannot grow: conditions say the same and can be extended.",
		"Typical status properties", finding.Warning}
	conditionLists = &rule{"LINT-8/conditions", "Conditions are a list that is keyed by `type`.",
		"Typical status properties", finding.Warning}
	messageWording = &rule{"LINT-9/message", "Messages say what must be, in one wording everywhere.", "Validation",
		finding.Warning}
	keyForms = &rule{"LINT-10/key", "Keys of labels and annotations are lower case, with dashes, behind a prefix of their owner.", "Label, selector, and annotation conventions", finding.Warning}
)

// ofKubernetes are the rules that are choices of Kubernetes among ways that are as good: of an ordinary API they are
// advice.
var ofKubernetes = map[*rule]bool{
	booleanPrefixes: true, timeNames: true, durationUnits: true, floatingPoint: true, enumValues: true,
	objectMaps: true, requiredValue: true,
}

// rules are all rules that look at one version.
var rules = []*rule{
	kindNames, resourceNames, groupNames, fieldNames, acronymCase, imperativeNames, controllerKinds, abbreviatedNames,
	booleanPrefixes, timeNames, durationUnits, periodNames, floatingPoint, unsignedIntegers, integerBounds,
	booleanFields,
	enumValues, objectMaps, listTypes, referenceNames, crossReferences, kindsWithoutGroup, requiredValue, unionDefault,
	itemsMembers, statusSubresources, phaseFields, conditionLists, messageWording, keyForms,
}
