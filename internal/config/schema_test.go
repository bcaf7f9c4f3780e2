package config

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// wordLists returns the lists of words that the reader compares with.
func wordLists() []any {
	return []any{
		abandonedWriteWays, admitOns, anonymous, auditModes, clientCertificates, credentials, dialects, errorFormats,
		eventWays, explainedValues,
		fieldNames, forwarded, halfCloses, httpProtocols, loggedRequests, logFormats, logLevels, metricNames, protocols,
		redisModes, regoVersions, requestIDs,
		tlsVersions, underscores, undescribedWays, writeLocks,
		[]apiserverv1.AudienceMatchPolicyType{apiserverv1.AudienceMatchPolicyMatchAny},
	}
}

// wordsOf returns the words that the reader takes for a type, of the lists that it compares with. The empty word stands
// where it is the same as leaving the key out.
func wordsOf(t reflect.Type) (words []string, isWord bool) {
	for _, list := range wordLists() {
		v := reflect.ValueOf(list)
		if v.Type().Elem() != t {
			continue
		}
		for i := range v.Len() {
			words = append(words, v.Index(i).String())
		}
		switch v.Index(0).Interface().(type) {
		case AbandonedWrites, ClientCertificates, Dialect, ErrorFormat, Events, HalfClose, HTTPProtocol, TLSVersion,
			Undescribed, apiserverv1.AudienceMatchPolicyType:
			words = append(words, "")
		}
		return words, true
	}
	return nil, false
}

// schemaMaker makes the schema of what the reader decodes.
type schemaMaker struct {
	docs docs
}

// of returns the schema of a type. The value is a decoded one with the reader's defaults. The reader takes null for a
// key that is left out, wherever it stands.
func (m *schemaMaker) of(t reflect.Type, defaults reflect.Value) map[string]any {
	switch {
	case t.Kind() == reflect.Pointer:
		if defaults.IsNil() {
			return m.of(t.Elem(), reflect.New(t.Elem()).Elem())
		}
		return m.of(t.Elem(), defaults.Elem())
	case t == reflect.TypeFor[Policies]():
		s := m.object(t, defaults)
		list := m.of(reflect.TypeFor[[]PolicyPath](), defaults.FieldByName("Paths"))
		s["type"], s["items"] = []string{"array", "object", "null"}, list["items"]
		return s
	case t == reflect.TypeFor[PolicyPath]():
		s := m.object(t, defaults)
		s["type"] = []string{"string", "object", "null"}
		return s
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return map[string]any{"type": []string{"string", "null"}}
	}
	switch t.Kind() {
	case reflect.Struct:
		return m.object(t, defaults)
	case reflect.Slice:
		item := reflect.New(t.Elem()).Elem()
		if defaults.Len() > 0 && t.Elem().Kind() == reflect.Struct {
			item = defaults.Index(0)
		}
		s := map[string]any{"type": []string{"array", "null"}, "items": m.of(t.Elem(), item)}
		if names, ok := defaults.Interface().([]string); ok && len(names) > 0 {
			s["default"] = names
		}
		return s
	case reflect.Map:
		return map[string]any{"type": []string{"object", "null"},
			"additionalProperties": m.of(t.Elem(), reflect.New(t.Elem()).Elem())}
	case reflect.Bool:
		return map[string]any{"type": []string{"boolean", "null"}, "default": defaults.Bool()}
	case reflect.Int32:
		return map[string]any{"type": []string{"integer", "null"}, "minimum": -1 << 31, "maximum": 1<<31 - 1,
			"default": defaults.Int()}
	case reflect.Int64:
		return map[string]any{"type": []string{"integer", "null"}, "minimum": -1 << 63, "maximum": 1<<63 - 1,
			"default": defaults.Int()}
	case reflect.String:
		s := map[string]any{"type": []string{"string", "null"}}
		if words, isWord := wordsOf(t); isWord {
			s["enum"] = wordList(words)
		}
		switch defaults.Interface().(type) {
		case ClientCertificates, Dialect: // which depend on other keys
		default:
			if text := defaults.String(); text != "" {
				s["default"] = text
			}
		}
		return s
	}
	panic("no schema for " + t.String())
}

// wordList returns the values that a key with such words may have.
func wordList(words []string) []any {
	all := make([]any, len(words)+1) // the last is null
	for i, word := range words {
		all[i] = word
	}
	return all
}

func (m *schemaMaker) object(t reflect.Type, defaults reflect.Value) map[string]any {
	properties := map[string]any{}
	m.fields(properties, t, defaults)
	return map[string]any{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
}

func (m *schemaMaker) fields(properties map[string]any, t reflect.Type, defaults reflect.Value) {
	for i := range t.NumField() {
		f := t.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case key == "" && f.Anonymous:
			m.fields(properties, f.Type, defaults.Field(i))
		case f.Type == reflect.TypeFor[apiserverv1.EgressSelectorType](): // which the reader refuses
		case f.IsExported():
			s := m.of(f.Type, defaults.Field(i))
			if t == reflect.TypeFor[BundleKey]() && f.Name == "Algorithm" {
				s["type"], s["enum"] = "string", signingAlgorithms // the key must not be left out
			}
			if text := m.docs[t.Name()+"."+f.Name]; text != "" {
				s["description"] = text
			}
			properties[key] = s
		}
	}
}

// docs are the comments of fields, by TYPE.FIELD, in the words of a configuration file.
type docs map[string]string

// readDocs reads the comments of the package's types.
func readDocs(t *testing.T) docs {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	raw, keys, words := docs{}, map[string]string{}, map[string]string{}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					readFields(raw, keys, n.Name.Name, s)
				}
			case *ast.ValueSpec: // a constant, which has its word in a file
				for i, value := range n.Values {
					if l, ok := value.(*ast.BasicLit); ok && l.Kind == token.STRING && ast.IsExported(n.Names[i].Name) {
						words[n.Names[i].Name], _ = strconv.Unquote(l.Value)
					}
				}
			}
			return true
		})
	}
	identifier := regexp.MustCompile(`[A-Za-z]+`)
	for at, text := range raw {
		of, field, _ := strings.Cut(at, ".")
		raw[at] = identifier.ReplaceAllStringFunc(text, func(word string) string {
			switch key := keys[of+"."+word]; {
			case word != field && word == strings.ToUpper(word): // such as TLS
				return word
			case key != "":
				return "`" + key + "`"
			case words[word] != "" && word != words[word]:
				return words[word]
			case word == "nil":
				return "null"
			case keys["."+word] != "" && strings.ToLower(word[1:]) != word[1:]:
				return "`" + keys["."+word] + "`"
			}
			return word
		})
	}
	return raw
}

// readFields reads the comments of a struct's fields. A comment that names the fields below it too is theirs as well.
func readFields(raw docs, keys map[string]string, of string, s *ast.StructType) {
	before := ""
	for _, f := range s.Fields.List {
		text := strings.Join(strings.Fields(f.Doc.Text()), " ")
		for _, name := range f.Names {
			if text == "" && strings.Contains(before, name.Name) {
				text = before
			}
			if f.Tag != nil {
				tag, _ := strconv.Unquote(f.Tag.Value)
				key := reflect.StructTag(tag).Get("json")
				keys[of+"."+name.Name], keys["."+name.Name] = key, key
			}
			raw[of+"."+name.Name] = text
		}
		before = text
	}
}

// full returns a configuration file in which everything is that may be left out: an empty object for each struct, and a
// list of one item for each list of them.
func full(t reflect.Type) any {
	switch {
	case t.Kind() == reflect.Pointer:
		return full(t.Elem())
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && t.Elem() != reflect.TypeFor[Prefix]():
		return []any{full(t.Elem())}
	case t.Kind() != reflect.Struct || t == reflect.TypeFor[Prefix]():
		return nil
	}
	all := map[string]any{}
	for _, f := range reflect.VisibleFields(t) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || key == "" {
			continue
		}
		if value := full(f.Type); value != nil {
			all[key] = value
		}
	}
	return all
}

// makeSchema returns the schema, with the defaults that the reader gives to a file.
func makeSchema(t *testing.T) []byte {
	file := full(reflect.TypeFor[Configuration]()).(map[string]any)
	file["apiVersion"], file["kind"] = APIVersion, Kind
	data, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "gateway.json")
	testutil.WriteFile(t, path, string(data))
	objects, errs := manifest.ReadFile(path)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	c := Default()
	if errs := c.decode(objects[0]); len(errs) > 0 {
		t.Fatal(errs)
	}
	(&validator{object: objects[0]}).configuration(c) // which sets defaults too; that keys lack is no matter here

	m := schemaMaker{docs: readDocs(t)}
	s := m.of(reflect.TypeFor[Configuration](), reflect.ValueOf(c).Elem())
	s["$schema"], s["title"], s["type"] = "http://json-schema.org/draft-07/schema#", Kind, "object"
	properties := s["properties"].(map[string]any)
	properties["apiVersion"], properties["kind"] = map[string]any{"const": APIVersion}, map[string]any{"const": Kind}
	s["required"] = []string{"apiVersion", "kind"}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		t.Fatal(err)
	}
	short := regexp.MustCompile(`\[\s+((?:"\w*"|null)(?:,\s+(?:"\w*"|null))*)\s+\]`)
	between := regexp.MustCompile(`,\s+`)
	return short.ReplaceAllFunc(out.Bytes(), func(list []byte) []byte {
		return fmt.Appendf(nil, "[%s]", between.ReplaceAll(bytes.TrimSpace(list[1:len(list)-1]), []byte(", ")))
	})
}

// keysOf adds the paths of a file's keys.
func keysOf(all map[string]bool, path string, value any) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			keysOf(all, path, item)
		}
	case map[string]any:
		for key, v := range value {
			all[path+"."+key] = true
			keysOf(all, path+"."+key, v)
		}
	}
}

// keysOfSchema adds the paths of the keys of a schema.
func keysOfSchema(all map[string]bool, path string, schema map[string]any) {
	if items, ok := schema["items"].(map[string]any); ok {
		keysOfSchema(all, path, items)
	}
	properties, _ := schema["properties"].(map[string]any)
	for key, s := range properties {
		all[path+"."+key] = true
		keysOfSchema(all, path+"."+key, s.(map[string]any))
	}
}

// TestWholeFileHasAllKeys: testdata/whole.yaml has each key of the schema.
func TestWholeFileHasAllKeys(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(JSONSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	want, got := map[string]bool{}, map[string]bool{}
	keysOfSchema(want, "", schema)
	keysOf(got, "", wholeFile(t))
	inOtherForm := regexp.MustCompile(`^\.policies\.(path|owner|concerns.*)$|^\.redis\.usernameFile$`).MatchString
	for key := range want {
		if !got[key] && !inOtherForm(key) {
			t.Errorf("%s is not in testdata/whole.yaml", key)
		}
	}
}

// TestSchemaOfPages: the schema takes the configuration files in the pages.
func TestSchemaOfPages(t *testing.T) {
	s := judge(t)
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks.FindAllSubmatch(text, -1) {
			if !bytes.Contains(block[1], []byte("kind: "+Kind)) {
				continue
			}
			found++
			takes(t, s, testutil.WriteFile(t, filepath.Join(t.TempDir(), "gateway.yaml"), string(block[1])))
		}
	}
	if found < 2 {
		t.Errorf("only %d files were found", found)
	}
}

// takes fails the test if the schema refuses a file.
func takes(t *testing.T, s *jsonschema.Schema, file string) {
	t.Helper()
	objects, errs := manifest.ReadFile(file)
	if len(errs) > 0 || len(objects) != 1 {
		t.Fatalf("%s: %v", file, errs)
	}
	if err := verdict(t, s, objects[0].JSON); err != nil {
		text, _ := os.ReadFile(file)
		t.Errorf("the schema refuses: %v\n%s", err, text)
	}
}

// TestSchema: the schema is that of the types that the reader decodes a file into.
func TestSchema(t *testing.T) {
	want := makeSchema(t)
	if bytes.Equal(JSONSchema(), want) {
		return
	}
	if !*update {
		t.Fatal("schema.json is of other types; go test ./internal/config -run TestSchema -update writes it")
	}
	if err := os.WriteFile("schema.json", want, 0o644); err != nil {
		t.Fatal(err)
	}
}

// judge returns what takes what the schema takes.
func judge(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("gateway.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("gateway.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// verdict returns why the schema refuses a file in JSON.
func verdict(t *testing.T, s *jsonschema.Schema, file []byte) error {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(value)
}

// isOfForm reports whether an error of the reader is one of those that a schema knows too: of a key, a type or a word.
var isOfForm = regexp.MustCompile(
	`: (unknown field|must be decodable|must be (an object|a list|a string|a boolean|an integer( of 32 bits)?), not |must be '[^']*'(, '[^']*')*( or '[^']*')?, not |must be .*, or an object)`).MatchString

// TestSchemaIsOfTheReader changes each key of a whole configuration file: what the schema refuses the reader refuses,
// and what the reader refuses for a key, a type or a word the schema refuses.
func TestSchemaIsOfTheReader(t *testing.T) {
	s := judge(t)
	dir := t.TempDir()
	kubeconfig(t, dir, api.Cluster{Server: "https://10.0.0.1:6443", InsecureSkipTLSVerify: true},
		api.AuthInfo{Token: "secret"})
	file := filepath.Join(dir, "gateway.json")
	read := func(root any) (string, error, error) {
		data, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		testutil.WriteFile(t, file, string(data))
		_, err = Load(file, Flags{})
		return string(data), err, verdict(t, s, data)
	}
	whole := wholeFile(t)
	if data, err, refusal := read(whole); err != nil || refusal != nil {
		t.Fatalf("%s\nthe reader: %v\nthe schema: %v", data, err, refusal)
	}

	changes := 0
	try := func(path string, change any) {
		if changes++; testing.Short() && changes%5 != 0 {
			return
		}
		data, err, refusal := read(whole)
		switch {
		case refusal != nil && err == nil:
			t.Errorf("%s: %v: the schema refuses what the reader takes: %v\n%s", path, change, refusal, data)
		case refusal == nil && err != nil && slices.ContainsFunc(strings.Split(err.Error(), "\n"),
			func(line string) bool {
				return strings.Contains(line, " "+path+": ") && isOfForm(line)
			}):
			t.Errorf("%s: %v: the schema takes what the reader refuses: %v", path, change, err)
		}
	}
	var walk func(path string, at any, set func(any))
	walk = func(path string, at any, set func(any)) {
		for _, other := range []any{nil, true, 1, 1.5, 1 << 40, json.Number("1e30"), "x", "", "pass", []any{}, []any{1},
			[]any{nil}, map[string]any{}, map[string]any{"x": 1}} {
			set(other)
			try(path, other)
		}
		set(at)
		switch at := at.(type) {
		case string:
			for _, word := range []string{strings.ToLower(at), strings.ToUpper(at), at + "x"} {
				set(word)
				try(path, word)
			}
			set(at)
		case []any:
			for i := range at {
				walk(fmt.Sprintf("%s[%d]", path, i), at[i], func(v any) { at[i] = v })
			}
		case map[string]any:
			at["unheardOf"] = 1
			try(strings.TrimPrefix(path+".unheardOf", "."), "an unknown key")
			delete(at, "unheardOf")
			for _, key := range slices.Sorted(maps.Keys(at)) {
				was := at[key]
				walk(strings.TrimPrefix(path+"."+key, "."), was, func(v any) { at[key] = v })
				delete(at, key)
				at[strings.ToUpper(key)] = was
				try(strings.TrimPrefix(path+"."+strings.ToUpper(key), "."), "in capitals")
				delete(at, strings.ToUpper(key))
				at[key] = was
			}
		}
	}
	identity := whole["identity"].(map[string]any)
	all := identity["authenticators"].([]any)
	isJWT := func(a any) bool { return a.(map[string]any)["jwt"] != nil } // whose expressions take long to compile
	for _, jwt := range all {
		if isJWT(jwt) {
			identity["authenticators"] = []any{jwt}
			walk("identity.authenticators[0]", jwt, func(v any) { identity["authenticators"] = []any{v} })
		}
	}
	identity["authenticators"] = slices.DeleteFunc(slices.Clone(all), isJWT)
	walk("", whole, func(v any) { whole, _ = v.(map[string]any) })
	list := whole["policies"].(map[string]any)["paths"]
	whole["policies"] = list
	walk("policies", list, func(v any) { whole["policies"] = v })
	if changes < 5000 {
		t.Errorf("only %d changes were tried", changes)
	}
}

// wholeFile returns testdata/whole.yaml, which has each key of the schema but for those of alternatives.
func wholeFile(t *testing.T) map[string]any {
	t.Helper()
	objects, errs := manifest.ReadFile("testdata/whole.yaml")
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(objects[0].JSON))
	if err != nil {
		t.Fatal(err)
	}
	return whole.(map[string]any)
}
