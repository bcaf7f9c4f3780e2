package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
)

// workloadJSON is the object of the benchmark, 1.3 KB, with a status that a client may not set.
//
//go:embed workload.json
var workloadJSON []byte

const (
	collection = "/apis/bench.example.com/v1/namespaces/team-a/workloads"
	objectName = "checkout"
	// contestedName is an object of which the backend keeps what is written, and whose ETags it compares.
	contestedName = "contested"
)

// A Load is a request that is sent over and over.
type Load struct {
	Name        string
	Method      string
	Path        string
	ContentType string // application/json by default
	Body        []byte // nil for none
	AsUser      bool   // with the token of a user
	IsSpread    bool   // over 1000 objects: writes to one object come one after the other
	IsChanging  bool   // each sets another number of replicas than the one before
	Connections int    // instead of the generator's; 0 for these
	IsHTTP2     bool   // by h2load, on connections and streams of its own number
	// the load of whose throughput, with the same target and in the same round, a part is sent in each second
	PacedBy string
	Only    []string // the targets that it is sent to; nil for all
}

// headers returns the lines that say what the body is.
func (l *Load) headers() []string {
	if l.Body == nil {
		return nil
	}
	lines := []string{"Content-Type: " + cmp.Or(l.ContentType, "application/json")}
	if l.ContentType == "application/grpc" {
		lines = append(lines, "TE: trailers")
	}
	return lines
}

// sentTo reports whether the load is sent to a target.
func (l *Load) sentTo(target string) bool { return l.Only == nil || slices.Contains(l.Only, target) }

const (
	getLoad      = "GET"
	postLoad     = "POST 1.3 KB"
	putLoad      = "PUT 1.3 KB to 1000 objects"
	patchLoad    = "PATCH of 1000 objects"
	onePatchLoad = "PATCH of one object by 64 clients"
	turnsLoad    = "PUT by 64 clients in turn"
	userLoad     = "GET with a JWT"

	mergePatch = "application/merge-patch+json"
	scaling    = `{"spec":{"replicas":4}}`
)

// watchEvent is an event of a watch, an object of the benchmark's kind.
const watchEvent = `{"type":"MODIFIED","object":{"apiVersion":"bench.example.com/v1","kind":"Workload","metadata":{"name":"checkout","namespace":"team-a","resourceVersion":"1001"},` +
	`"spec":{"revisionHistoryLimit":10,"strategy":"RollingUpdate","replicas":3}}}`

// changedWorkload is the object as a client replaces it: changed, and with the version that it replaces.
func changedWorkload() []byte {
	changed := bytes.Replace(workloadJSON, []byte(`"replicas":3`), []byte(`"replicas":4`), 1)
	return bytes.Replace(changed, []byte(`"metadata":{`), []byte(`"metadata":{"resourceVersion":"1001",`), 1)
}

// defaulted are the fields that the policies set in the object, by path.
func defaulted() map[string]any {
	return map[string]any{
		"spec.revisionHistoryLimit":        float64(10),
		"spec.strategy":                    "RollingUpdate",
		"spec.template.spec.restartPolicy": "Always",
	}
}

// checkPassThrough makes sure that a proxy forwards the requests of the measurement unchanged.
func checkPassThrough(address string) error {
	for _, l := range loads() {
		if !l.sentTo(gatewayTarget) {
			continue
		}
		want := l.Body
		if want == nil {
			want = workloadJSON
		}
		got, err := exchange(address, l.Method, l.Path, l.Body)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s %s: the answer is not the object: %s", l.Method, l.Path, got)
		}
	}
	return nil
}

// checkEmulation makes sure that what a plain backend lacks is really supplied: a PUT carries the version that it
// replaces and leaves the status and what the system owns as they are, one that names another version is refused, and a
// patch has the same result.
func checkEmulation(address string) error {
	const one = collection + "/" + objectName
	for _, l := range loads() {
		if !l.sentTo(emulationTarget) {
			continue
		}
		path, body := l.Path, l.Body
		if l.IsSpread {
			path, body = path+"-7", bytes.Replace(body, []byte(`"name":"`+objectName+`"`),
				[]byte(`"name":"`+objectName+`-7"`), 1)
		}
		code, answer, err := sendAs(address, l.Method, path, l.ContentType, body)
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d %s", code, answer)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		var got struct {
			Metadata struct {
				ResourceVersion string
				Generation      int
			}
			Spec   struct{ Replicas int }
			Status struct{ ReadyReplicas int }
		}
		if err := json.Unmarshal(answer, &got); err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		if got.Metadata.ResourceVersion != "1002" || got.Metadata.Generation != 1 || got.Spec.Replicas != 4 ||
			got.Status.ReadyReplicas != 3 {
			return fmt.Errorf("%s: the answer is not the changed object with its new version, a generation and the stored status: %s", l.Name, answer)
		}
	}
	stale := bytes.Replace(changedWorkload(), []byte("1001"), []byte("1000"), 1)
	code, answer, err := send(address, http.MethodPut, one, stale)
	if err == nil && code != http.StatusConflict {
		err = fmt.Errorf("a PUT of another version is not refused: %d %s", code, answer)
	}
	return err
}

// checkContested makes sure that the object that many write is changed by each of them.
func checkContested(address string) error {
	for _, replicas := range []string{"7", "8"} {
		code, answer, err := sendAs(address, http.MethodPatch, collection+"/"+contestedName, mergePatch,
			[]byte(`{"spec":{"replicas":`+replicas+`}}`))
		if err == nil && (code != http.StatusOK || !bytes.Contains(answer, []byte(`"replicas":`+replicas))) {
			err = fmt.Errorf("a patch of the object that many write: %d %s", code, answer)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkValidated makes sure that a patch is sent on as the client's own, and that one with an invalid result is not.
func checkValidated(address string) error {
	for body, want := range map[string]int{scaling: http.StatusOK,
		`{"spec":{"replicas":51}}`:         http.StatusUnprocessableEntity,
		`{"spec":{"minReadySeconds":600}}`: http.StatusUnprocessableEntity} {
		code, answer, err := sendAs(address, http.MethodPatch, collection+"/"+objectName+"-7", mergePatch, []byte(body))
		if err == nil && code != want {
			err = fmt.Errorf("the patch %s: %d %s", body, code, answer)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkDocumented makes sure that the schema of the document holds.
func checkDocumented(address string) error {
	wrong := bytes.Replace(workloadJSON, []byte(`"containerPort":8080`), []byte(`"containerPort":80800`), 1)
	for _, one := range []struct {
		body []byte
		want int
	}{{workloadJSON, http.StatusCreated}, {wrong, http.StatusUnprocessableEntity}} {
		code, answer, err := sendAs(address, http.MethodPost, collection, "application/json", one.body)
		if err == nil && code != one.want {
			err = fmt.Errorf("the POST: %d %s", code, answer)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkETags makes sure that an object has an ETag of the gateway's, and that a PUT of another version is refused.
func checkETags(address string) error {
	client := http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	url := "http://" + address + collection + "/" + objectName
	read, err := client.Get(url)
	if err != nil {
		return err
	}
	_ = read.Body.Close()
	if tag := read.Header.Get("ETag"); !strings.HasPrefix(tag, `"gw-`) {
		return fmt.Errorf("the object has the ETag %s, which is not the gateway's", tag)
	}
	put, err := http.NewRequest(http.MethodPut, url, bytes.NewReader(workloadJSON))
	if err != nil {
		return err
	}
	put.Header.Set("Content-Type", "application/json")
	put.Header.Set("If-Match", `"other"`)
	answer, err := client.Do(put)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusPreconditionFailed {
		return fmt.Errorf("a PUT of another version is answered %d", answer.StatusCode)
	}
	return nil
}

// checkAdmission makes sure that every part of the admission that is measured takes place: the status goes, the
// defaults come, the schema holds, and each of the five rules denies.
func checkAdmission(address string) error {
	admitted, err := exchange(address, http.MethodPost, collection, workloadJSON)
	if err != nil {
		return err
	}
	var want, got map[string]any
	if err := json.Unmarshal(workloadJSON, &want); err != nil {
		return err
	}
	if err := json.Unmarshal(admitted, &got); err != nil {
		return fmt.Errorf("the admitted object: %w", err)
	}
	delete(want, "status")
	for path, value := range defaulted() {
		set(want, path, value)
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("the admitted object must lack its status and have the defaults: %s", admitted)
	}
	for _, wrong := range []struct{ what, old, new string }{
		{"the schema", `"replicas":3`, `"replicas":"3"`},
		{"rule 1", `"replicas":3`, `"replicas":51`},
		{"rule 2", `"minReadySeconds":10`, `"minReadySeconds":600`},
		{"rule 3", `"matchLabels":{"app":"checkout"}`, `"matchLabels":{"app":"cart"}`},
		{"rule 4", `envoy:1.31.2`, `envoy:latest`},
		{"rule 5", `"limits":{"cpu":"200m","memory":"128Mi"}`, `"limits":{"cpu":"200m"}`},
	} {
		body := bytes.Replace(workloadJSON, []byte(wrong.old), []byte(wrong.new), 1)
		if bytes.Equal(body, workloadJSON) {
			return fmt.Errorf("%s: the object has no %s", wrong.what, wrong.old)
		}
		code, answer, err := send(address, http.MethodPost, collection, body)
		if err != nil {
			return err
		}
		if code != http.StatusUnprocessableEntity {
			return fmt.Errorf("%s does not deny %s: %d %s", wrong.what, wrong.new, code, answer)
		}
	}
	return nil
}

// set sets the field at a path of names separated by dots.
func set(object map[string]any, path string, value any) {
	for {
		name, rest, more := strings.Cut(path, ".")
		if !more {
			object[path] = value
			return
		}
		object, path = object[name].(map[string]any), rest
	}
}

// exchange sends a request and returns the body of its 2xx answer.
func exchange(address, method, path string, body []byte) ([]byte, error) {
	code, answer, err := send(address, method, path, body)
	if err == nil && code/100 != 2 {
		err = fmt.Errorf("%s %s: %d %s", method, path, code, answer)
	}
	return answer, err
}

func send(address, method, path string, body []byte) (code int, answer []byte, err error) {
	return sendAs(address, method, path, "", body)
}

func sendAs(address, method, path, contentType string, body []byte) (code int, answer []byte, err error) {
	request, err := http.NewRequest(method, "http://"+address+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", cmp.Or(contentType, "application/json"))
	}
	client := http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// The targets that judge by three policies in Rego, and their requests: the gateway a POST, OPA's own server the review
// of one, as a proxy would ask it.
const (
	regoTarget = "gateway-rego"
	opaTarget  = "opa"
	regoLoad   = "POST 1.3 KB judged by three policies in Rego"
	opaLoad    = "the same asked of OPA"
	decision   = "/v1/data/decision/violation"
)

var regoTargets = []string{regoTarget, opaTarget}

func regoLoads() []Load {
	return []Load{
		{Name: regoLoad, Method: http.MethodPost, Path: collection, Body: workloadJSON, Only: []string{regoTarget}},
		{Name: opaLoad, Method: http.MethodPost, Path: decision, Body: question(workloadJSON),
			Only: []string{opaTarget}},
	}
}

// question returns the body in which a proxy asks OPA about the creation of an object.
func question(object []byte) []byte {
	return fmt.Appendf(nil, `{"input":{"review":{"operation":"CREATE","name":"checkout","namespace":"team-a",`+
		`"kind":{"group":"bench.example.com","version":"v1","kind":"Workload"},"userInfo":{"username":"system:anonymous"},"object":%s}}}`, object)
}

// checkRego makes sure that the object passes, and that each of the three policies finds what is wrong.
func checkRego(address string, ask func(address string, object []byte) (denied string, err error)) error {
	if denied, err := ask(address, workloadJSON); err != nil || denied != "" {
		return fmt.Errorf("the object is denied: %s, %v", denied, err)
	}
	for _, wrong := range []struct{ old, new, want string }{
		{"registry.example.com/payments", "docker.io/payments", "container <web> has an invalid image repo"},
		{`"team":"payments"`, `"team":"7"`, "does not satisfy allowed regex"},
		{`"name":"web",`, `"name":"web","securityContext":{"privileged":true},`,
			"Privileged container is not allowed: web"},
	} {
		body := bytes.Replace(workloadJSON, []byte(wrong.old), []byte(wrong.new), 1)
		denied, err := ask(address, body)
		if err != nil || !strings.Contains(denied, wrong.want) {
			return fmt.Errorf("with %s the answer is %q, %v, and not %q", wrong.new, denied, err, wrong.want)
		}
	}
	return nil
}

// postRego returns the gateway's refusal; empty if it takes the object.
func postRego(address string, object []byte) (string, error) {
	code, answer, err := send(address, http.MethodPost, collection, object)
	switch {
	case err != nil:
		return "", err
	case code == http.StatusUnprocessableEntity || code == http.StatusForbidden:
		var status struct{ Message string }
		err := json.Unmarshal(answer, &status)
		return status.Message, err
	case code/100 != 2:
		return "", fmt.Errorf("%d %s", code, answer)
	}
	return "", nil
}

// askOPA returns what OPA finds; empty if it finds nothing.
func askOPA(address string, object []byte) (string, error) {
	answer, err := exchange(address, http.MethodPost, decision, question(object))
	if err != nil {
		return "", err
	}
	var found struct{ Result []struct{ Msg string } }
	if err := json.Unmarshal(answer, &found); err != nil {
		return "", err
	}
	if found.Result == nil {
		return "", fmt.Errorf("no decision: %s", answer)
	}
	var all []string
	for _, v := range found.Result {
		all = append(all, v.Msg)
	}
	return strings.Join(all, "; "), nil
}
