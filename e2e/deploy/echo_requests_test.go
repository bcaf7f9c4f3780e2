package deploy

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// The media types of bodies.
const (
	plainJSON      = "application/json"
	plainYAML      = "application/yaml"
	protobufType   = "application/vnd.kubernetes.protobuf"
	jsonPatch      = "application/json-patch+json"
	mergePatch     = "application/merge-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	applyPatch     = "application/apply-patch+yaml"
)

// A question is a request that a policy denies.
type question struct {
	verb, method, path, contentType string
	body                            []byte
	user                            *user
	resource                        string // with group, version and subresource
	isOwn                           bool   // the resource is one of Kubernetes' own
}

func (q *question) String() string {
	body := string(q.body)
	if q.contentType == protobufType {
		body = "in protobuf"
	}
	return fmt.Sprintf("%s %s as %s (%s) %s", q.method, q.path, q.user.name, q.contentType, body[:min(len(body), 300)])
}

// A served resource is one of the server's discovery, with an object that is stored.
type served struct {
	schema.GroupVersion
	metav1.APIResource
	main, sub string
	base      string         // the path of the collection
	stored    map[string]any // as the server has it in this version
	sent      map[string]any // as a client writes it
}

func (s *served) isOwn() bool { return s.GroupVersion.Group != "echo.example.com" }

// isStored reports whether a request that is not denied stores something.
func (q *question) isStored() bool {
	group, name, _ := strings.Cut(q.resource, " ")
	_, isReview := reviews[strings.TrimSuffix(group, "/v1")+"/"+name]
	return !isReview && !strings.Contains(q.path, "dryRun=All")
}

// isExempt reports whether no policy of the server matches the resource. Requests for it are dry runs.
func (s *served) isExempt() bool {
	return s.GroupVersion.Group == "admissionregistration.k8s.io"
}

func (s *served) name() string { return text(s.stored, "metadata", "name") }

func text(v map[string]any, path ...string) string {
	for _, key := range path[:len(path)-1] {
		v, _ = v[key].(map[string]any)
	}
	s, _ := v[path[len(path)-1]].(string)
	return s
}

// A generator makes the questions.
type generator struct {
	// dropsIgnoring says that the server drops ignoreStoreReadErrorWithClusterBreakingPotential, as servers before 1.37
	// do.
	dropsIgnoring bool

	t         *testing.T
	users     []*user
	n         int
	questions []*question
}

// generate makes questions of all that the server's discovery lists as writable.
func generate(t *testing.T, c *cluster, users []*user) []*question {
	t.Helper()
	g := &generator{t: t, users: users, dropsIgnoring: isBefore(t, 37)}
	samples := map[schema.GroupVersionKind]map[string]any{}
	kinds := map[schema.GroupKind]map[string]any{}
	files, err := filepath.Glob("testdata/echo/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for _, tree := range documents(t, file) {
			kind := schema.FromAPIVersionAndKind(text(tree, "apiVersion"), text(tree, "kind"))
			if samples[kind] == nil {
				samples[kind], kinds[kind.GroupKind()] = tree, tree
			}
		}
	}
	for _, tree := range certificateObjects() {
		kind := schema.FromAPIVersionAndKind(text(tree, "apiVersion"), text(tree, "kind"))
		samples[kind], kinds[kind.GroupKind()] = tree, tree
	}

	for _, gv := range groupVersions(t, c) {
		root := "/apis/" + gv.String()
		if gv.Group == "" {
			root = "/api/v1"
		}
		var list metav1.APIResourceList
		get(t, c, root, &list)
		mains := map[string]*served{}
		for _, r := range list.APIResources {
			main, sub, _ := strings.Cut(r.Name, "/")
			if len(r.Verbs) == 0 || isSubset(r.Verbs, []string{"get", "list", "watch"}) && sub != "proxy" &&
				sub != "exec" && sub != "attach" && sub != "portforward" {
				continue
			}
			s := &served{GroupVersion: gv, APIResource: r, main: main, sub: sub}
			if sub == "" {
				gvk := gv.WithKind(r.Kind)
				sample := samples[gvk]
				if sample == nil {
					sample = kinds[gvk.GroupKind()]
				}
				if sample == nil {
					if spec, isReview := reviews[gv.Group+"/"+r.Name]; isReview {
						if r.Namespaced {
							root += "/namespaces/echo"
						}
						g.add(s, "create", "POST", root+"/"+r.Name, plainJSON,
							inJSON(map[string]any{"apiVersion": gv.String(), "kind": r.Kind,
								"metadata": map[string]any{}, "spec": spec}))
						root = strings.TrimSuffix(root, "/namespaces/echo")
						continue
					}
					if r.Name != "bindings" {
						t.Errorf("testdata/echo has no object of %v", gvk)
						continue
					}
					sample = map[string]any{"metadata": map[string]any{"name": "echo", "namespace": "echo"}}
				}
				s.base = root
				if r.Namespaced {
					s.base += "/namespaces/" + text(sample, "metadata", "namespace")
				}
				s.base += "/" + r.Name
				if path := s.base + "/" + text(sample, "metadata", "name"); version != latest &&
					slices.Contains(r.Verbs, "get") && !exists(t, c, path) {
					t.Logf("not asked: kube-apiserver %s serves %s, and not the version of the sample", version, path)
					continue
				}
				if slices.Contains(r.Verbs, "get") {
					get(t, c, s.base+"/"+text(sample, "metadata", "name"), &s.stored)
				}
				s.sent = samples[gvk]
				if s.sent == nil && s.stored != nil {
					s.sent = clone(s.stored)
					delete(s.sent, "status")
					metadata := s.sent["metadata"].(map[string]any)
					for _, name := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields",
						"generation"} {
						delete(metadata, name)
					}
				}
				mains[r.Name] = s
			} else if mains[main] != nil {
				m := mains[main]
				s.base, s.stored, s.sent = m.base, m.stored, m.sent
			} else {
				continue
			}
			g.of(s)
		}
	}
	return g.questions
}

// authorizes adds a question of each user about the authorizer.
func (g *generator) authorizes(s *served) {
	for _, u := range g.users {
		query := "?dryRun=All&fieldManager=" + aboutAuthorizer
		g.by(u, s, "create", "POST", s.base+query, plainJSON, inJSON(s.renamed()))
		g.by(u, s, "patch", "PATCH", s.base+"/"+s.name()+query, mergePatch,
			[]byte(`{"metadata":{"labels":{"changed":"yes"}}}`))
	}
}

// reviews are resources that are questions, which no policy judges, with what is asked.
var reviews = map[string]any{
	"authentication.k8s.io/selfsubjectreviews": nil,
	"authentication.k8s.io/tokenreviews":       map[string]any{"token": "of-nobody"},
	"authorization.k8s.io/selfsubjectaccessreviews": map[string]any{"nonResourceAttributes": map[string]any{"path": "/",
		"verb": "get"}},
	"authorization.k8s.io/selfsubjectrulesreviews": map[string]any{"namespace": "echo"},
	"authorization.k8s.io/subjectaccessreviews": map[string]any{"user": "alice",
		"nonResourceAttributes": map[string]any{"path": "/", "verb": "get"}},
	"authorization.k8s.io/localsubjectaccessreviews": map[string]any{"user": "alice",
		"resourceAttributes": map[string]any{
			"namespace": "echo", "verb": "get", "resource": "pods",
		}},
}

func isSubset(of, all []string) bool {
	return !slices.ContainsFunc(of, func(s string) bool { return !slices.Contains(all, s) })
}

func groupVersions(t *testing.T, c *cluster) []schema.GroupVersion {
	t.Helper()
	all := []schema.GroupVersion{{Version: "v1"}}
	var groups metav1.APIGroupList
	get(t, c, "/apis", &groups)
	for _, group := range groups.Groups {
		if strings.HasSuffix(group.Name, "none.example.com") {
			continue
		}
		for _, v := range group.Versions {
			all = append(all, schema.GroupVersion{Group: group.Name, Version: v.Version})
		}
	}
	return all
}

func get(t *testing.T, c *cluster, path string, into any) {
	t.Helper()
	code, body := ask(t, "of-root", "GET", c.url+path, "", "")
	if err := json.Unmarshal([]byte(body), into); err != nil || code != 200 {
		t.Fatalf("%s: %d %s %v", path, code, body, err)
	}
}

func clone(v map[string]any) map[string]any { return runtime.DeepCopyJSON(normal(v)) }

// normal returns a tree with numbers as JSON has them.
func normal(v map[string]any) map[string]any {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(b, &tree); err != nil {
		panic(err)
	}
	return tree
}

// with returns a copy of an object with a value at a path; nil removes it.
func with(v map[string]any, value any, path ...string) map[string]any {
	v = clone(v)
	in := v
	for _, key := range path[:len(path)-1] {
		next, ok := in[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			in[key] = next
		}
		in = next
	}
	if value == nil {
		delete(in, path[len(path)-1])
	} else {
		in[path[len(path)-1]] = value
	}
	return v
}

func inJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func inYAML(v any) []byte {
	b, err := yaml.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// inProtobuf returns an object in protobuf; nil if its kind has no such form.
func inProtobuf(v map[string]any) []byte {
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(inJSON(v), nil, nil)
	if err != nil {
		return nil
	}
	return encodeProtobuf(o)
}

func encodeProtobuf(o runtime.Object) []byte {
	var b bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &b); err != nil {
		return nil
	}
	return b.Bytes()
}

// add adds a question, each by another user in turn.
func (g *generator) add(s *served, verb, method, path, contentType string, body []byte) {
	g.n++
	g.by(g.users[g.n%len(g.users)], s, verb, method, path, contentType, body)
}

func (g *generator) by(u *user, s *served, verb, method, path, contentType string, body []byte) {
	if s.isExempt() {
		if verb == "delete" && body != nil || strings.Contains(path, "dryRun") && verb != "create" &&
			verb != "update" && verb != "patch" {
			return // the options of the body count alone, and it is carried out
		}
		if !strings.Contains(path, "dryRun") {
			separator := "?"
			if strings.Contains(path, "?") {
				separator = "&"
			}
			path += separator + "dryRun=All"
		}
	}
	g.questions = append(g.questions, &question{verb: verb, method: method, path: path, contentType: contentType,
		body: body, user: u,
		resource: s.GroupVersion.String() + " " + s.Name, isOwn: s.isOwn()})
}

// of adds the questions about a resource, or a subresource.
func (g *generator) of(s *served) {
	if s.sub != "" {
		g.ofSubresource(s)
		return
	}
	switch s.Name {
	case "deployments", "gadgets", "nodes":
		g.authorizes(s)
	}
	for _, verb := range s.Verbs {
		switch verb {
		case "create":
			g.creates(s)
		case "update":
			g.updates(s)
		case "patch":
			g.patches(s, s.base+"/"+s.name(), true)
		case "delete":
			g.deletes(s)
		case "deletecollection":
			g.collections(s)
		}
	}
}

func (g *generator) creates(s *served) {
	if s.Name == "bindings" {
		binding := map[string]any{"apiVersion": "v1", "kind": "Binding", "metadata": map[string]any{"name": "echo"},
			"target": map[string]any{"kind": "Node", "name": "echo"}}
		g.add(s, "create", "POST", s.base, plainJSON, inJSON(binding))
		g.add(s, "create", "POST", s.base+"?fieldManager=m&dryRun=All", plainJSON, inJSON(with(binding, nil, "kind")))
		return
	}
	path, fresh := s.base, s.renamed()
	g.add(s, "create", "POST", path, plainJSON, inJSON(fresh))
	g.add(s, "create", "POST", path+"?dryRun=All&fieldManager=m&fieldValidation=Strict", plainJSON,
		inJSON(with(fresh, map[string]any{"a": "b", "c": ""}, "metadata", "labels")))
	g.add(s, "create", "POST", path+"?fieldValidation=Ignore&pretty=true", plainYAML, inYAML(fresh))
	g.add(s, "create", "POST", path+"?fieldManager=a%20b&force=true&gracePeriodSeconds=3&propagationPolicy=Orphan", "",
		inJSON(fresh))
	if s.isOwn() {
		g.add(s, "create", "POST", path+"?fieldValidation=Warn", plainJSON,
			inJSON(with(with(fresh, nil, "kind"), nil, "apiVersion")))
		if b := inProtobuf(fresh); b != nil {
			g.add(s, "create", "POST", path+"?fieldManager=m", protobufType, b)
		}
	}
	if s.Namespaced {
		g.add(s, "create", "POST", path, plainJSON, inJSON(with(fresh, nil, "metadata", "namespace")))
		g.add(s, "create", "POST", path, plainJSON, inJSON(with(fresh, "", "metadata", "namespace")))
	}
	if !hasFixedName[s.main] {
		nameless := with(with(fresh, nil, "metadata", "name"), "gen-", "metadata", "generateName")
		g.add(s, "create", "POST", path+"?fieldManager=m", plainJSON, inJSON(nameless))
		g.add(s, "create", "POST", path, plainJSON, inJSON(with(fresh, "gen-", "metadata", "generateName")))
	}
}

// hasFixedName are resources whose names follow from what is in them.
var hasFixedName = map[string]bool{"apiservices": true, "customresourcedefinitions": true, "ipaddresses": true}

// renamed returns the object as a client writes it, under another name.
func (s *served) renamed() map[string]any {
	switch s.main {
	case "apiservices":
		return with(with(s.sent, "v2.none.example.com", "metadata", "name"), "v2", "spec", "version")
	case "customresourcedefinitions":
		return with(with(with(s.sent, "others.echo.example.com", "metadata", "name"), "others", "spec", "names",
			"plural"), "other", "spec", "names", "singular")
	case "ipaddresses":
		return with(s.sent, "10.7.8.10", "metadata", "name")
	}
	return with(s.sent, "fresh", "metadata", "name")
}

func (g *generator) updates(s *served) {
	path := s.base + "/" + s.name()
	changed := with(s.stored, "yes", "metadata", "labels", "changed")
	g.add(s, "update", "PUT", path, plainJSON, inJSON(changed))
	g.add(s, "update", "PUT", path+"?dryRun=All&fieldManager=m&fieldValidation=Warn", plainYAML, inYAML(changed))
	g.add(s, "update", "PUT", path, "", inJSON(s.stored))
	g.add(s, "update", "PUT", path+"?fieldManager=m&fieldValidation=Strict", plainJSON,
		inJSON(with(with(with(changed, nil, "metadata", "uid"), nil, "metadata", "creationTimestamp"), nil, "metadata",
			"managedFields")))
	if s.Namespaced {
		g.add(s, "update", "PUT", path, plainJSON, inJSON(with(changed, nil, "metadata", "namespace")))
	}
	if s.isOwn() {
		g.add(s, "update", "PUT", path+"?fieldManager=m", plainJSON,
			inJSON(with(with(changed, nil, "kind"), nil, "apiVersion")))
		g.add(s, "update", "PUT", path, plainJSON, inJSON(with(changed, nil, "metadata", "resourceVersion")))
		if b := inProtobuf(changed); b != nil {
			g.add(s, "update", "PUT", path+"?fieldManager=m", protobufType, b)
		}
	}
	if s.main == "leases" {
		g.add(s, "update", "PUT", s.base+"/fresh?fieldManager=m", plainJSON, inJSON(s.renamed()))
	}
}

// patches adds patches of the four types.
func (g *generator) patches(s *served, path string, isMain bool) {
	verb := "patch"
	g.add(s, verb, "PATCH", path+"?fieldManager=m", mergePatch, []byte(`{"metadata":{"labels":{"changed":"yes"}}}`))
	g.add(s, verb, "PATCH", path+"?dryRun=All&fieldValidation=Strict", jsonPatch,
		[]byte(`[{"op":"add","path":"/metadata/labels","value":{"changed":"yes"}}]`))
	if s.isOwn() {
		g.add(s, verb, "PATCH", path+"?fieldValidation=Ignore", strategicPatch,
			[]byte(`{"metadata":{"annotations":{"changed":"yes"}}}`))
	}
	apply := map[string]any{"apiVersion": s.GroupVersion.String(), "kind": s.Kind,
		"metadata": map[string]any{"labels": map[string]any{"applied": "yes"}}}
	g.add(s, verb, "PATCH", path+"?fieldManager=applier&force=true", applyPatch, inYAML(apply))
	if isMain {
		g.add(s, verb, "PATCH", path, mergePatch, []byte(`{}`))
		g.add(s, verb, "PATCH", path+"?fieldManager=applier&dryRun=All", applyPatch,
			inJSON(with(apply, s.name(), "metadata", "name")))
		if s.main != "apiservices" && s.main != "ipaddresses" && s.main != "customresourcedefinitions" {
			g.add(s, verb, "PATCH", s.base+"/fresh?fieldManager=applier&force=false", applyPatch, inYAML(s.renamed()))
		}
	}
}

func (g *generator) deletes(s *served) {
	path := s.base + "/" + s.name()
	metadata := s.stored["metadata"].(map[string]any)
	options := map[string]any{"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan",
		"dryRun": []any{"All"}}
	g.add(s, "delete", "DELETE", path, "", nil)
	g.add(s, "delete", "DELETE", path+"?gracePeriodSeconds=3&propagationPolicy=Foreground", "", nil)
	g.add(s, "delete", "DELETE", path+"?dryRun=All&orphanDependents=true", "", nil)
	if !g.dropsIgnoring {
		g.add(s, "delete", "DELETE",
			path+"?gracePeriodSeconds=0&ignoreStoreReadErrorWithClusterBreakingPotential=false", "", nil)
	}
	g.add(s, "delete", "DELETE", path+"?gracePeriodSeconds=9", plainJSON, inJSON(options))
	g.add(s, "delete", "DELETE", path, "", []byte(`{"orphanDependents":false,"gracePeriodSeconds":0}`))
	g.add(s, "delete", "DELETE", path, plainJSON,
		inJSON(map[string]any{"preconditions": map[string]any{"uid": metadata["uid"],
			"resourceVersion": metadata["resourceVersion"]}}))
	g.add(s, "delete", "DELETE", path, plainYAML, inYAML(with(options, "meta.k8s.io/v1", "apiVersion")))
	if s.isOwn() {
		grace := int64(4)
		if b := encodeProtobuf(&metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
			GracePeriodSeconds: &grace}); b != nil {
			g.add(s, "delete", "DELETE", path, protobufType, b)
		}
	}
}

func (g *generator) collections(s *served) {
	path := s.base + "?fieldSelector=metadata.name%3D" + s.name()
	g.add(s, "deletecollection", "DELETE", path, "", nil)
	g.add(s, "deletecollection", "DELETE", path+"&propagationPolicy=Background&dryRun=All", "", nil)
	g.add(s, "deletecollection", "DELETE", path, plainJSON, []byte(`{"gracePeriodSeconds":1}`))
}

func (g *generator) ofSubresource(s *served) {
	path := s.base + "/" + s.name() + "/" + s.sub
	changed := with(s.stored, "yes", "metadata", "labels", "changed")
	switch s.sub {
	case "eviction":
		eviction := map[string]any{"apiVersion": "policy/v1", "kind": "Eviction",
			"metadata": map[string]any{"name": s.name(), "namespace": "echo"}}
		g.add(s, "create", "POST", path, plainJSON, inJSON(eviction))
		g.add(s, "create", "POST", path+"?dryRun=All&fieldManager=m", plainJSON,
			inJSON(with(with(eviction, nil, "kind"), nil, "apiVersion")))
		g.add(s, "create", "POST", path, plainYAML,
			inYAML(with(eviction, map[string]any{"gracePeriodSeconds": 2, "dryRun": []any{"All"}}, "deleteOptions")))
		g.add(s, "create", "POST", path, protobufType, inProtobuf(with(eviction, nil, "metadata", "namespace")))
	case "binding":
		binding := map[string]any{"apiVersion": "v1", "kind": "Binding", "metadata": map[string]any{"name": s.name()},
			"target": map[string]any{"kind": "Node", "name": "echo"}}
		g.add(s, "create", "POST", path, plainJSON, inJSON(binding))
		g.add(s, "create", "POST", path+"?fieldManager=m&dryRun=All", plainJSON, inJSON(with(binding, nil, "kind")))
		g.add(s, "create", "POST", path, protobufType, inProtobuf(binding))
	case "token":
		token := map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
			"spec": map[string]any{"audiences": []any{"a"}, "expirationSeconds": 700}}
		g.add(s, "create", "POST", path, plainJSON, inJSON(token))
		g.add(s, "create", "POST", path+"?fieldManager=m&dryRun=All", plainJSON,
			inJSON(with(with(token, nil, "kind"), nil, "apiVersion")))
		g.add(s, "create", "POST", path, plainYAML,
			inYAML(with(with(token, "echo", "metadata", "name"), "echo", "metadata", "namespace")))
		g.add(s, "create", "POST", path, protobufType, inProtobuf(token))
	case "scale":
		scale := map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale",
			"metadata": map[string]any{"name": s.name(), "namespace": text(s.stored, "metadata", "namespace")},
			"spec":     map[string]any{"replicas": 3}}
		if text(s.stored, "metadata", "namespace") == "" {
			scale = with(scale, nil, "metadata", "namespace")
		}
		g.add(s, "update", "PUT", path, plainJSON, inJSON(scale))
		g.add(s, "update", "PUT", path+"?fieldManager=m&dryRun=All", "", inJSON(scale))
		g.add(s, "update", "PUT", path, plainYAML, inYAML(with(scale, nil, "metadata", "namespace")))
		if s.isOwn() {
			g.add(s, "update", "PUT", path, plainJSON, inJSON(with(with(scale, nil, "kind"), nil, "apiVersion")))
			g.add(s, "update", "PUT", path, protobufType, inProtobuf(scale))
			g.add(s, "patch", "PATCH", path, strategicPatch, []byte(`{"spec":{"replicas":4}}`))
		}
		g.add(s, "patch", "PATCH", path+"?fieldManager=m", mergePatch, []byte(`{"spec":{"replicas":4}}`))
		g.add(s, "patch", "PATCH", path+"?dryRun=All", jsonPatch,
			[]byte(`[{"op":"replace","path":"/spec/replicas","value":5}]`))
		g.add(s, "patch", "PATCH", path+"?fieldManager=m&force=true", applyPatch,
			[]byte(`{"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":6}}`))
	case "ephemeralcontainers":
		patch := []byte(`{"spec":{"ephemeralContainers":[{"name":"e","image":"i"}]}}`)
		g.add(s, "patch", "PATCH", path+"?fieldManager=m", strategicPatch, patch)
		g.add(s, "patch", "PATCH", path+"?dryRun=All", mergePatch, patch)
		g.add(s, "update", "PUT", path, plainJSON,
			inJSON(with(changed, []any{map[string]any{"name": "e", "image": "i"}}, "spec", "ephemeralContainers")))
	case "resize":
		patch := []byte(`{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"30m"}}}]}}`)
		g.add(s, "patch", "PATCH", path+"?fieldManager=m", strategicPatch, patch)
		g.add(s, "patch", "PATCH", path+"?dryRun=All", strategicPatch, patch)
		g.add(s, "update", "PUT", path, plainJSON, inJSON(changed))
	case "exec", "attach":
		for _, query := range []string{"?stdout=true&command=a&command=b%20c&container=c",
			"?stdin=true&stdout=true&stderr=false&command=sh", "?command=a&tty=true&stdin=true&stdout=true"} {
			g.add(s, "connect", "POST", path+query, "", nil)
			g.add(s, "connect", "GET", path+query, "", nil)
		}
	case "portforward":
		g.add(s, "connect", "POST", path+"?ports=80", "", nil)
		g.add(s, "connect", "GET", path, "", nil)
	case "proxy":
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH"} {
			g.add(s, "connect", method, path, "", nil)
			g.add(s, "connect", method, path+"/a/b?c=d", "", nil)
		}
	case "finalize":
		g.add(s, "update", "PUT", path, plainJSON, inJSON(changed))
		g.add(s, "update", "PUT", path+"?fieldManager=m&dryRun=All", plainJSON, inJSON(with(changed, nil, "kind")))
	case "approval":
		approved := with(s.stored,
			[]any{map[string]any{"type": "Approved", "status": "True", "reason": "Echo", "message": "yes"}}, "status",
			"conditions")
		g.add(s, "update", "PUT", path, plainJSON, inJSON(approved))
		g.add(s, "update", "PUT", path+"?fieldManager=m&dryRun=All", plainJSON, inJSON(with(approved, nil, "kind")))
		g.patches(s, path, false)
	case "status":
		g.add(s, "update", "PUT", path, plainJSON, inJSON(changed))
		g.add(s, "update", "PUT", path+"?fieldManager=m&dryRun=All&fieldValidation=Strict", plainYAML, inYAML(changed))
		g.add(s, "update", "PUT", path, "", inJSON(with(changed, nil, "metadata", "managedFields")))
		if s.isOwn() {
			g.add(s, "update", "PUT", path, plainJSON, inJSON(with(with(changed, nil, "kind"), nil, "apiVersion")))
			if b := inProtobuf(changed); b != nil {
				g.add(s, "update", "PUT", path+"?fieldManager=m", protobufType, b)
			}
		}
		g.patches(s, path, false)
	default:
		if !slices.Equal(s.Verbs, []string{"get"}) {
			g.t.Errorf("there are no questions about %v %s", s.GroupVersion, s.Name)
		}
	}
}

// documents returns the documents of a YAML file as trees.
func documents(t *testing.T, file string) []map[string]any {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	for text := range strings.SplitSeq(string(b), "\n---\n") {
		all = append(all, document(t, []byte(text)))
	}
	return all
}

// certificateObjects returns the objects that have certificates or requests for them, always the same ones.
var certificateObjects = sync.OnceValue(func() []map[string]any {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	request := func(name string) []byte {
		raw, err := x509.CreateCertificateRequest(rand.Reader,
			&x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
		if err != nil {
			panic(err)
		}
		return raw
	}
	authority := &x509.Certificate{SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: "echo"}, IsCA: true,
		BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, authority, authority, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return []map[string]any{
		{"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
			"metadata": map[string]any{"name": "echo"}, "spec": map[string]any{
				"signerName": "echo.example.com/echo", "usages": []any{"digital signature"},
				"request": base64.StdEncoding.EncodeToString([]byte(encoded("CERTIFICATE REQUEST", request("echo")))),
			}},
		{"apiVersion": "certificates.k8s.io/v1", "kind": "ClusterTrustBundle",
			"metadata": map[string]any{"name": "echo"}, "spec": map[string]any{
				"trustBundle": encoded("CERTIFICATE", raw),
			}},
		{"apiVersion": "certificates.k8s.io/v1", "kind": "PodCertificateRequest",
			"metadata": map[string]any{"name": "echo", "namespace": "echo"}, "spec": map[string]any{
				"signerName": "echo.example.com/echo", "podName": "echo", "podUID": "p-1", "serviceAccountName": "echo",
				"serviceAccountUID": "s-1",
				"nodeName":          "echo", "nodeUID": "n-1", "maxExpirationSeconds": 3600,
				"stubPKCS10Request": base64.StdEncoding.EncodeToString(request("")),
			}},
	}
})

// writePair writes a certificate and its key.
func writePair(t *testing.T, dir string, pair tls.Certificate) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "tls.crt"), encoded("CERTIFICATE", pair.Certificate[0]))
	write(t, filepath.Join(dir, "tls.key"), encoded("PRIVATE KEY", key))
}

// exists reports whether the server has an object at a path.
func exists(t *testing.T, c *cluster, path string) bool {
	t.Helper()
	code, _ := ask(t, "of-root", "GET", c.url+path, "", "")
	return code == 200
}
