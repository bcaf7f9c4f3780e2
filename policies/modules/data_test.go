package modules

import (
	"testing"

	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/policies/source"
)

// TestDataOfFolders: what a data file says of a place stands beside what the files in the folders below say of it, and
// two files must not say different things.
func TestDataOfFolders(t *testing.T) {
	of := func(files map[string]string) *Compiled {
		all := []source.File{{Name: "p/a.rego", Role: source.Module,
			Data: []byte("package a\n\nboth if {\n\tdata.team.words == [1]\n\tdata.team.more.n == 2\n}\n")}}
		for name, text := range files {
			all = append(all, source.File{Name: name, Role: source.Data, Data: []byte(text)})
		}
		return New(source.Of(all).Files, nil).Folder("p", rego.Options{}).Compile()
	}
	c := of(map[string]string{"p/team/data.json": `{"words": [1]}`, "p/team/more/data.json": `{"n": 2}`})
	if len(c.Errors) > 0 || len(c.Warnings) > 0 {
		t.Errorf("found %v, %v", c.Errors, c.Warnings)
	}
	c = of(map[string]string{"p/data.json": `{"team": {"words": [1]}}`, "p/team/data.json": `{"words": [2]}`})
	if want := "p/team/data.json:0:0: must not say anything else of a place in `data` than another file"; len(c.Errors) != 1 || c.Errors[0].Error() != want {
		t.Errorf("found %v, want %s", c.Errors, want)
	}
}
