package policies

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/admission-gateway/gateway/policies/source"
)

// BenchmarkPublishedDocument measures the load of GitHub's document, of 12.7 MB: the processor's time,
// and what the set keeps.
func BenchmarkPublishedDocument(b *testing.B) {
	packed, err := os.ReadFile(filepath.Join(os.Getenv("SUITES_DIR"), "data", "openapi", "github.json.gz"))
	if err != nil {
		b.Skip("SUITES_DIR has no documents: ", err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		b.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		b.Fatal(err)
	}
	files := source.Of([]source.File{{Name: "github.json", Data: text}})
	var set *Set
	b.ReportAllocs()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	spent := cpu(b)
	for b.Loop() {
		set, _ = CompileFor(files, Gateway{})
	}
	b.ReportMetric(float64((cpu(b)-spent).Milliseconds())/float64(b.N), "cpu-ms/op")
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/(1<<20), "kept-MB")
	runtime.KeepAlive(set)
}
