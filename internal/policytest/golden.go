package policytest

import (
	"encoding/json"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// golden returns the object that a case expects; nil if it expects none. With --update it is written as it is now.
func (p *player) golden(c *testCase, answer *reply) (json.RawMessage, error) {
	if c.Expect.ObjectFile == "" {
		return c.Expect.Object, nil
	}
	file := filepath.Join(filepath.Dir(c.file), c.Expect.ObjectFile)
	if p.update && answer.code < 400 {
		return answer.body, writeObject(file, answer.body)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return yaml.YAMLToJSON(data)
}

// writeObject writes an object as YAML, without what a server sets.
func writeObject(file string, object []byte) error {
	var fields any
	if err := json.Unmarshal(object, &fields); err != nil {
		return err
	}
	strip(fields, nil)
	data, err := yaml.Marshal(fields)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}
