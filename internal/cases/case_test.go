package cases

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func ptr[T any](v T) *T { return &v }

func TestRead(t *testing.T) {
	file := write(t, `{"id":"a","policyFiles":["p.yaml"],"namespaces":{"x":{"team":"a"}},"setup":[{"method":"POST","path":"/s","body":{"a": 1}}],"request":{"method":"PUT","path":"/p","contentType":"application/json","rawBody":"x","headers":{"Accept":"*/*"},"user":{"name":"u","groups":["g"]}},"follow":[{"method":"GET","path":"/f"}],"expect":{"code":422,"reason":"Invalid","message":"m","causes":[{"reason":"r","message":"cm","field":"f"}],"warnings":["w"],"contentType":"application/json","follow":[{"code":200,"object":{"x":1}}]},"expectKube":{"code":404,"rawBody":"no"},"oracle":"o","orderUnstable":true}

{"id":"b","request":{"method":"GET","path":"/","rawBodyBase64":"AAE="},"expect":{"code":0,"rawBody":"closed"}}
`)
	got, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	want := []Case{{
		ID: "a", PolicyFiles: []string{"p.yaml"}, Namespaces: map[string]map[string]string{"x": {"team": "a"}},
		Setup: []Request{{Method: "POST", Path: "/s", Body: []byte(`{"a": 1}`)}},
		Request: Request{
			Method: "PUT", Path: "/p", ContentType: "application/json", RawBody: ptr("x"),
			Headers: map[string]string{"Accept": "*/*"}, User: &User{Name: "u", Groups: []string{"g"}},
		},
		Follow: []Request{{Method: "GET", Path: "/f"}},
		Expect: Response{
			Code: 422, ContentType: "application/json", Warnings: []string{"w"}, Reason: ptr("Invalid"), Message: "m",
			Causes: []Cause{{Reason: "r", Message: "cm", Field: "f"}},
			Follow: []Response{{Code: 200, Object: []byte(`{"x":1}`)}},
		},
		ExpectKube: &Response{Code: 404, RawBody: ptr("no")}, Oracle: "o", OrderUnstable: true,
	}, {
		ID: "b", Request: Request{Method: "GET", Path: "/", RawBodyBase64: ptr("AAE=")},
		Expect: Response{RawBody: ptr("closed")},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	body, has, err := got[1].Request.body()
	if string(body) != "\x00\x01" || !has || err != nil {
		t.Errorf("the body in base64: got %q %v %v", body, has, err)
	}
}

func TestReadRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":      "{\n",
		"no id":        `{"request":{}}`,
		"an id twice":  `{"id":"a"}` + "\n" + `{"id":"a"}`,
		"a wrong type": `{"id":7}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := Read(write(t, text)); err == nil {
				t.Errorf("got %+v", got)
			}
		})
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that does not exist was read")
	}
}
