package cases

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// played returns the result of a case answered with the given code, when the real server said want.
func played(id string, want, got int) *Result {
	r := &Result{Case: &Case{ID: id, Expect: Response{Code: want, Reason: ptr("R")}},
		Got: Response{Code: got, Reason: ptr("R")}}
	r.compare()
	return r
}

func TestLedger(t *testing.T) {
	ledger := func(agree, total int, open map[string]string) *Ledger {
		return &Ledger{
			Agree: map[Measure]int{ByAnswer: agree, ByWarnings: agree, ByMessage: agree},
			Total: map[Measure]int{ByAnswer: total, ByWarnings: total, ByMessage: total},
			Open:  map[Measure]map[string]string{ByAnswer: open},
		}
	}
	onPurpose := []Deliberate{{ID: "c", Code: 400, Reason: "R", Why: "stricter"}}
	for _, c := range []struct {
		name     string
		before   *Ledger
		results  []*Result
		problems []string
	}{
		{
			name:    "as recorded",
			before:  ledger(1, 3, map[string]string{"b": "not yet"}),
			results: []*Result{played("a", 200, 200), played("b", 200, 500), played("c", 200, 400)},
		},
		{
			name:    "a case agrees no more",
			before:  ledger(1, 1, nil),
			results: []*Result{played("a", 200, 500)},
			problems: []string{"a: does not agree by answer:\n\tcode: want 200, got 500",
				"0 cases agree by answer; 1 did before", "0 cases agree by warnings; 1 did before",
				"0 cases agree by message; 1 did before"},
		},
		{
			name:     "an open case agrees",
			before:   ledger(0, 1, map[string]string{"b": "not yet"}),
			results:  []*Result{played("b", 200, 200)},
			problems: []string{"b: agrees by answer, differs on purpose or does not exist: its entry has to go (run with -update)", "1/1 cases agree by answer, recorded are 0/1 (run with -update)", "1/1 cases agree by warnings, recorded are 0/1 (run with -update)", "1/1 cases agree by message, recorded are 0/1 (run with -update)"},
		},
		{
			name:     "a deliberate difference is another one",
			before:   ledger(0, 1, nil),
			results:  []*Result{played("c", 200, 500)},
			problems: []string{"c: is to answer 400 R [] on purpose, answers 500 R []"},
		},
		{
			name:     "a deliberate difference is none",
			before:   ledger(1, 1, nil),
			results:  []*Result{played("c", 400, 400)},
			problems: []string{"c: agrees, so it does not differ on purpose"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, problems := c.before.Compare(c.results, onPurpose)
			if !reflect.DeepEqual(problems, c.problems) {
				t.Errorf("got  %q\nwant %q", problems, c.problems)
			}
		})
	}
}

func TestLedgerOfObjects(t *testing.T) {
	result := func(id string, code int, got string) *Result {
		r := &Result{Case: &Case{ID: id, Expect: Response{Code: 200, Object: []byte(`{"a":1}`)}},
			Got: Response{Code: code, Object: []byte(got)}}
		r.compare()
		return r
	}
	results := []*Result{result("same", 200, `{"a":1}`), result("other", 200, `{"a":2}`), result("refused", 400, `{}`)}
	before := &Ledger{
		Agree: map[Measure]int{ByAnswer: 2, ByObject: 1, ByMetadata: 1, ByWarnings: 2},
		Total: map[Measure]int{ByAnswer: 3, ByObject: 3, ByMetadata: 3, ByWarnings: 3},
		Open:  map[Measure]map[string]string{ByAnswer: {"refused": "not yet"}},
	}
	now, problems := before.Compare(results, nil)
	if want := []string{"other: does not agree by object:\n\tobject: want (at a) {\"a\":1}, got {\"a\":2}"}; !reflect.DeepEqual(problems, want) {
		t.Errorf("got %q, want %q", problems, want)
	}
	want := "set: 2/3 code+reason+fields, 0 differ on purpose, 1 open; object 1/3; metadata 1/3; warnings 2/3; message 0/0"
	if got := now.Summary("set", results, nil); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestLedgerFile(t *testing.T) {
	want := &Ledger{
		Agree: map[Measure]int{ByAnswer: 5, ByObject: 3, ByMetadata: 0, ByWarnings: 5, ByMessage: 1},
		Total: map[Measure]int{ByAnswer: 7, ByObject: 4, ByMetadata: 4, ByWarnings: 7, ByMessage: 3},
		Open: map[Measure]map[string]string{ByAnswer: {"a/b.yaml#0": "PATCH is not applied", "c": "x"},
			ByObject: {"d": "y"}},
	}
	file := filepath.Join(t.TempDir(), "set.txt")
	if err := want.Write(file, "first\nsecond"); err != nil {
		t.Fatal(err)
	}
	got, err := ReadLedger(file)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
	text, err := os.ReadFile(file)
	const wantText = `# first
# second
agree answer 5 of 7
agree object 3 of 4
agree metadata 0 of 4
agree warnings 5 of 7
agree message 1 of 3
open answer a/b.yaml#0 PATCH is not applied
open answer c x
open object d y
`
	if err != nil || string(text) != wantText {
		t.Errorf("got %s, %v", text, err)
	}
	for _, line := range []string{"agree answer x of 7", "agree answer 1", "agree beauty 1 of 1", "open message a b",
		"shut answer a b"} {
		if _, err := ReadLedger(write(t, line)); err == nil {
			t.Errorf("%q was read", line)
		}
	}
}

func TestReadDeliberate(t *testing.T) {
	got, err := ReadDeliberate(write(t, "# comment\na/b | 400 BadRequest | spec.x spec.y | RES-3: stricter | safer\nc | 201 |  | looser\n"))
	want := []Deliberate{
		{ID: "a/b", Code: 400, Reason: "BadRequest", Fields: []string{"spec.x", "spec.y"},
			Why: "RES-3: stricter | safer"},
		{ID: "c", Code: 201, Fields: []string{}, Why: "looser"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	for _, line := range []string{"a | 400 | why", "a | x | | why", "a | 400 | | ", " | 400 | | why"} {
		if _, err := ReadDeliberate(write(t, line)); err == nil {
			t.Errorf("%q was read", line)
		}
	}
}
