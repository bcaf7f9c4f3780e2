package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// tableOf returns the table of the fields of a CustomResourceDefinition's first version, in their order in the file.
func tableOf(crd string) ([]byte, error) {
	text, err := os.ReadFile(crd)
	if err != nil {
		return nil, err
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema schema `yaml:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		return nil, err
	}
	if len(definition.Spec.Versions) == 0 {
		return nil, fmt.Errorf("it has no version")
	}
	t := &table{}
	t.WriteString("| field | type | default | meaning |\n|---|---|---|---|\n")
	root := &definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	t.members("", root)
	return t.Bytes(), t.err
}

// A schema has the parts that a table shows.
type schema struct {
	Description          string
	Type                 string
	Enum                 []string
	Default              yaml.Node
	Required             []string
	Properties           yaml.Node
	Items                *schema
	AdditionalProperties yaml.Node `yaml:"additionalProperties"`
	Minimum, Maximum     *int64
	MaxItems             *int64 `yaml:"maxItems"`
	IsIntOrString        bool   `yaml:"x-kubernetes-int-or-string"`
	Rules                []rule `yaml:"x-kubernetes-validations"`
}

type rule struct{ Message, FieldPath string }

func (r *rule) UnmarshalYAML(n *yaml.Node) error {
	var read struct {
		Message   string
		FieldPath string `yaml:"fieldPath"`
	}
	err := n.Decode(&read)
	*r = rule(read)
	return err
}

// A table is made row by row.
type table struct {
	bytes.Buffer
	err error
}

// isShown reports whether a field of the object says something about this kind: what all kinds have does not.
func isShown(path string) bool { return path != "apiVersion" && path != "kind" && path != "metadata" }

// members adds the members of an object, and theirs. A rule of the object is shown at the field that it names.
func (t *table) members(path string, s *schema) {
	rules := map[string][]string{}
	for _, r := range s.Rules {
		if name := strings.TrimPrefix(r.FieldPath, "."); name != "" {
			rules[name] = append(rules[name], r.Message)
		}
	}
	for i := 0; i+1 < len(s.Properties.Content); i += 2 {
		name := s.Properties.Content[i].Value
		member := &schema{}
		if err := s.Properties.Content[i+1].Decode(member); err != nil {
			t.err = errors.Join(t.err, fmt.Errorf("%s: %w", path+name, err))
		}
		if !isShown(path + name) {
			continue
		}
		t.row(path+name, member, slices.Contains(s.Required, name), rules[name])
		t.below(path+name, member)
	}
}

// below adds the fields below a field.
func (t *table) below(path string, s *schema) {
	t.members(path+".", s)
	if s.Items != nil {
		t.below(path+"[]", s.Items)
	}
	if s.AdditionalProperties.Kind == yaml.MappingNode {
		values := &schema{}
		if err := s.AdditionalProperties.Decode(values); err != nil {
			t.err = errors.Join(t.err, fmt.Errorf("%s[KEY]: %w", path, err))
		}
		t.below(path+"[KEY]", values)
	}
}

// row adds the row of a field.
func (t *table) row(path string, s *schema, isRequired bool, rules []string) {
	meaning := strings.TrimSpace(s.Description)
	for _, r := range s.Rules {
		if r.FieldPath == "" {
			rules = append(rules, r.Message)
		}
	}
	if s.Items != nil {
		for _, r := range s.Items.Rules {
			rules = append(rules, "each item "+r.Message)
		}
	}
	if len(rules) > 0 {
		meaning = strings.TrimSpace(meaning + " Rules: " + strings.Join(rules, "; ") + ".")
	}
	value := ""
	if !s.Default.IsZero() {
		value = "`" + flow(&s.Default) + "`"
	}
	if isRequired {
		value = "required"
	}
	_, _ = fmt.Fprintf(t, "| `%s` | %s | %s | %s |\n", path, cell(typeOf(s)), cell(value),
		cell(strings.TrimSpace(meaning)))
}

// cell returns text that does not end a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "|", `\|`), "\n", " ")
}

// typeOf says what values a field takes.
func typeOf(s *schema) string {
	switch {
	case len(s.Enum) > 0:
		quoted := make([]string, len(s.Enum))
		for i, value := range s.Enum {
			quoted[i] = "`" + value + "`"
		}
		return strings.Join(quoted, ", ")
	case s.IsIntOrString:
		return "integer or string"
	case s.Type == "array" && s.Items != nil:
		return "list of " + typeOf(s.Items) + upTo(s.MaxItems, "items")
	case s.Type == "object" && s.AdditionalProperties.Kind == yaml.MappingNode:
		return "map"
	case s.Type == "":
		return "any"
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf("%s, %d to %d", s.Type, *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		return fmt.Sprintf("%s, %d or more", s.Type, *s.Minimum)
	}
	return s.Type
}

func upTo(n *int64, what string) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf(", at most %d %s", *n, what)
}

// flow returns a value in one line.
func flow(n *yaml.Node) string {
	n.Style = yaml.FlowStyle
	text, err := yaml.Marshal(n)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}
