package document

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestSteadyStateAllocatesNothing(t *testing.T) {
	body := []byte(deployment)
	dst := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() { dst = admit(t, body, dst[:0]) }); n >= 1 {
		t.Errorf("%v allocations per document", n)
	}
	want := strings.NewReplacer(
		`"periodSeconds":10}}]}}}}`, `"periodSeconds":10}}],"restartPolicy":"Always"}},"minReadySeconds":0}}`,
		`"IfNotPresent"`, `"Always"`).Replace(deployment)
	if string(dst) != want {
		t.Errorf("got %s\nwant %s", dst, want)
	}
}

// hostile are bodies made to cost much memory per byte.
func hostile() map[string]string {
	var keys, objects strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&keys, `,"%x":0`, i)
	}
	for range 10_000 {
		objects.WriteString(`,{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"k":0,"l":0,"m":0,"n":0,"o":0,"p":0,"q":0}`)
	}
	list := func(items string) string { return "[" + strings.TrimPrefix(items, ",") + "]" }
	return map[string]string{
		"numbers":            list(strings.Repeat(",0", 500_000)),
		"empty objects":      list(strings.Repeat(",{}", 300_000)),
		"keys":               "{" + keys.String()[1:] + "}",
		"small objects":      list(strings.Repeat(`,{"":0}`, 300_000)),
		"objects of 17":      list(objects.String()),
		"depth":              strings.Repeat("[", 64) + strings.Repeat("]", 64),
		"dense, then sparse": "[" + strings.Repeat("0,", 1000) + `"` + strings.Repeat("a", 1_000_000) + `"]`,
		"sparse, then dense": `["` + strings.Repeat("a", 500_000) + `"` + strings.Repeat(",0", 250_000) + "]",
		"escaped keys":       list(strings.Repeat(`,{"\u0061":0}`, 100_000)),
		"escapes":            list(strings.Repeat(`,"\u0061"`, 100_000)),
		"refused at its end": "[" + strings.Repeat("0,", 500_000) + "}",
	}
}

// Everything that is allocated while parsing, garbage included, is at most 100
// times the input.
func TestMemoryOfHostileBodies(t *testing.T) {
	for name, body := range hostile() {
		t.Run(name, func(t *testing.T) {
			bytes := []byte(body)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			d := new(Document)
			err := d.parse(bytes, Limits{}.withDefaults())
			runtime.ReadMemStats(&after)
			if (err != nil) != strings.HasPrefix(name, "refused") {
				t.Fatal(err)
			}
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%.1f times the input", float64(allocated)/float64(len(body)))
			if allocated > 100*uint64(len(body))+16<<10 {
				t.Errorf("%d bytes allocated for %d", allocated, len(body))
			}
		})
	}
}

// One large text does not pin its memory: some small ones give it back.
func TestReleaseDropsLargeBuffers(t *testing.T) {
	for name, body := range hostile() {
		d := new(Document)
		if err := d.parse([]byte(body), Limits{}.withDefaults()); err != nil {
			continue
		}
		d.Append(d.Root(), []byte(body))
		d.reset()
		if cap(d.tape) > keepLarge*keepEntries || cap(d.side) > keepLarge*keepBytes ||
			cap(d.index) > keepLarge*keepIndex || cap(d.own) > keepLarge*keepBytes {
			t.Errorf("%s: kept %d entries, %d and %d bytes, %d words", name, cap(d.tape), cap(d.side), cap(d.own),
				cap(d.index))
		}
		for range keepIdle {
			if err := d.parse([]byte(`{"a":[1]}`), Limits{}.withDefaults()); err != nil {
				t.Fatal(err)
			}
			d.Set(d.Root(), "b", []byte(`2`))
			d.reset()
		}
		if cap(d.tape) > keepEntries || cap(d.side) > keepBytes || cap(d.index) > keepIndex || cap(d.own) > keepBytes ||
			d.body != nil {
			t.Errorf("%s: kept %d entries, %d and %d bytes, %d words", name, cap(d.tape), cap(d.side), cap(d.own),
				cap(d.index))
		}
	}
}
