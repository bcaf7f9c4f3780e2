package document_test

import (
	"fmt"

	"github.com/admission-gateway/gateway/internal/document"
)

// An edit leaves every other byte unchanged: order, spacing and the spelling of numbers.
func Example() {
	d, err := document.Parse([]byte(`{ "price": 1.50,  "name":"o1", "draft": true }`), document.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Release()
	root := d.Root()
	d.SetString(root, "name", "o2")
	d.Set(root, "priority", []byte("3"))
	if draft, found := root.Get("draft"); found {
		d.Remove(draft)
	}
	fmt.Println(string(d.AppendTo(nil)))
	// Output: { "price": 1.50,  "name":"o2", "priority":3 }
}

// What two parsers could read in two ways is refused, and the error says where.
func ExampleParse() {
	_, err := document.Parse([]byte(`{"spec": {"replicas": 1, "replicas": 100}}`), document.Limits{})
	fmt.Println(err)
	// Output: spec.replicas: duplicate key 'replicas' at offset 25
}
