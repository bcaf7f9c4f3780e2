package policytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/admission-gateway/gateway/internal/manifest"
)

// ReadObject reads the object in a file, of YAML or JSON, as JSON. It may be one of an ordinary API.
func ReadObject(file string) (object []byte, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	object, err = ReadObjectFrom(f, file)
	return object, errors.Join(err, f.Close())
}

// ReadObjectFrom reads an object as ReadObject does.
func ReadObjectFrom(from io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	if json.Valid(data) {
		return data, nil
	}
	if data, err = manifest.ReadBody(data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// ReadObjects reads the objects in a file: a list in JSON, or any number of objects with kind and
// apiVersion.
func ReadObjects(file string) (all []json.RawMessage, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(data, &all) == nil {
		return all, nil
	}
	objects, errs := manifest.Read(file, data)
	for _, e := range errs {
		if !e.Warning {
			return nil, e
		}
	}
	all = nil
	for _, o := range objects {
		all = append(all, o.Document().AppendTo(nil))
	}
	return all, nil
}
