package config

import _ "embed"

// schema is the JSON Schema of a configuration file. TestSchema writes it from the types that the file is decoded into,
// and from their comments.
//
//go:embed schema.json
var schema []byte

// JSONSchema returns the JSON Schema (draft 7) of a configuration file: its keys, their types, words, defaults and what
// they are. It takes what the reader takes, but for what depends on more than one key or on the range of a number.
func JSONSchema() []byte { return schema }
