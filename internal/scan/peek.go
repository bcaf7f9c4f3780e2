package scan

import (
	"bytes"
	"encoding/json"
)

// peek returns the texts of the first members of an object, up to the first member that is an array called items, which
// is '['. It is of the beginning of a text alone.
func peek(head []byte) map[string]string {
	found := map[string]string{}
	d := json.NewDecoder(bytes.NewReader(head))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return found
	}
	for d.More() {
		key, err := d.Token()
		name, _ := key.(string)
		if err != nil {
			return found
		}
		depth := 0
		for {
			value, err := d.Token()
			if err != nil {
				return found
			}
			switch v := value.(type) {
			case json.Delim:
				if v == '[' && depth == 0 && name == "items" {
					found[name] = "["
					return found
				}
				if v == '[' || v == '{' {
					depth++
				} else {
					depth--
				}
			case string:
				if depth == 0 {
					found[name] = v
				}
			}
			if depth == 0 {
				break
			}
		}
	}
	return found
}
