package cel

import apiservercel "k8s.io/apiserver/pkg/cel"

// JSONSchema returns the members of the objects as a JSON Schema: which names objects have, and where lists and maps
// are. It says nothing of texts, numbers and booleans, nor of objects that may have members which their schema does not
// name.
func (t *ObjectType) JSONSchema() map[string]any {
	f := t.types()
	return f.schemaOf(f.decl)
}

func (t *fieldTypes) schemaOf(d *apiservercel.DeclType) map[string]any {
	switch {
	case d == nil:
	case d.IsObject() && len(d.Fields) > 0 && !t.open[d]:
		properties := map[string]any{}
		for name, field := range d.Fields {
			plain, ok := apiservercel.Unescape(name)
			if !ok {
				plain = name
			}
			properties[plain] = t.schemaOf(field.Type)
		}
		return map[string]any{"type": "object", "properties": properties}
	case d.IsList():
		return map[string]any{"type": "array", "items": t.schemaOf(d.ElemType)}
	case d.IsMap():
		return map[string]any{"type": "object"}
	}
	return map[string]any{}
}
