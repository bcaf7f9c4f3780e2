package cases

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A Measure is a set of aspects in which cases are counted as agreeing, over the cases that it covers.
type Measure string

// The measures, from the one that matters most.
const (
	ByAnswer   Measure = "answer"   // code, reason and fields; all cases
	ByObject   Measure = "object"   // code and object; cases answered with an object
	ByMetadata Measure = "metadata" // the same with the metadata that a server keeps itself
	ByWarnings Measure = "warnings" // code and Warning headers; all cases
	ByMessage  Measure = "message"  // code, reason and the Status' message; cases answered with a failure
)

// Measures lists every measure.
func Measures() []Measure {
	return []Measure{ByAnswer, ByObject, ByMetadata, ByWarnings, ByMessage}
}

func (m Measure) aspects() []Aspect {
	switch m {
	case ByObject:
		return []Aspect{Code, Object}
	case ByMetadata:
		return []Aspect{Code, Object, Metadata}
	case ByWarnings:
		return []Aspect{Code, Warnings}
	case ByMessage:
		return []Aspect{Code, Reason, Message}
	}
	return []Aspect{Code, Reason, Fields}
}

func (m Measure) about(c *Case) bool {
	switch m {
	case ByObject, ByMetadata:
		return c.Expect.Object != nil
	case ByMessage:
		return c.Expect.Reason != nil
	}
	return true
}

// isNamed reports whether every case that does not agree by the measure has to be named in the
// ledger. Of other measures the ledger has only the number.
func (m Measure) isNamed() bool { return m == ByAnswer || m == ByObject }

// A Deliberate difference is a case in which the gateway answers otherwise than the real server on purpose, with the
// answer that it gives instead.
type Deliberate struct {
	ID     string
	Code   int
	Reason string   // empty if the answer is no failure
	Fields []string // in order
	Why    string
}

// A Ledger says how far a set of cases agrees: the number by each measure, which may only rise, and the cases that do
// not agree yet, with what is missing for them.
type Ledger struct {
	Agree map[Measure]int
	Total map[Measure]int
	Open  map[Measure]map[string]string // by measure and case id: what is missing
}

// Compare compares results with the ledger and the deliberate differences. It returns the agreement
// now, as a ledger to record, and what is wrong: cases that agreed before and do not now,
// deliberate differences that are no longer so, entries without their case, and agreement that is
// not recorded yet.
func (l *Ledger) Compare(results []*Result, deliberate []Deliberate) (*Ledger, []string) {
	now := &Ledger{Agree: map[Measure]int{}, Total: map[Measure]int{}, Open: map[Measure]map[string]string{}}
	onPurpose := map[string]*Deliberate{}
	for i := range deliberate {
		onPurpose[deliberate[i].ID] = &deliberate[i]
	}
	var problems []string
	for _, r := range results {
		if d := onPurpose[r.Case.ID]; d != nil {
			problems = append(problems, d.check(r)...)
		}
	}
	for _, m := range Measures() {
		now.Open[m] = map[string]string{}
		for _, r := range results {
			if m.about(r.Case) {
				problems = append(problems, now.count(m, r, onPurpose[r.Case.ID] != nil, l.Open[m])...)
			}
		}
		problems = append(problems, l.compareWith(now, m)...)
	}
	return now, problems
}

// count takes one case into account by one measure.
func (l *Ledger) count(m Measure, r *Result, onPurpose bool, open map[string]string) []string {
	l.Total[m]++
	agrees := r.Agrees(m.aspects()...)
	if agrees {
		l.Agree[m]++
	}
	missing, isOpen := open[r.Case.ID]
	switch {
	case agrees || !m.isNamed() || onPurpose:
	case isOpen:
		l.Open[m][r.Case.ID] = missing
	case m == ByObject && !r.Agrees(Code):
		// There is no object; only the answer of the case counts.
	default:
		return []string{fmt.Sprintf("%s: does not agree by %s:\n\t%s", r.Case.ID, m,
			strings.ReplaceAll(r.Explain(m.aspects()...), "\n", "\n\t"))}
	}
	return nil
}

// compareWith reports the ledger's entries for a measure that differ from the results.
func (l *Ledger) compareWith(now *Ledger, m Measure) []string {
	var problems []string
	for _, id := range slices.Sorted(maps.Keys(l.Open[m])) {
		if _, still := now.Open[m][id]; !still {
			problems = append(problems, fmt.Sprintf("%s: agrees by %s, differs on purpose or does not exist: its entry has to go (run with -update)", id, m))
		}
	}
	switch {
	case now.Agree[m] < l.Agree[m]:
		problems = append(problems, fmt.Sprintf("%d cases agree by %s; %d did before", now.Agree[m], m, l.Agree[m]))
	case now.Agree[m] > l.Agree[m] || now.Total[m] != l.Total[m]:
		problems = append(problems, fmt.Sprintf("%d/%d cases agree by %s, recorded are %d/%d (run with -update)",
			now.Agree[m], now.Total[m], m, l.Agree[m], l.Total[m]))
	}
	return problems
}

// check returns what is wrong with a deliberate difference: it is no difference any more, or
// another one than is written down.
func (d *Deliberate) check(r *Result) []string {
	reason := ""
	if r.Got.Reason != nil {
		reason = *r.Got.Reason
	}
	fields := fieldSet(&r.Got)
	if r.Got.Code != d.Code || reason != d.Reason || !slices.Equal(fields, d.Fields) {
		return []string{fmt.Sprintf("%s: is to answer %d %s %v on purpose, answers %d %s %v", d.ID, d.Code, d.Reason,
			d.Fields, r.Got.Code, reason, fields)}
	}
	if len(r.Differences) == 0 {
		return []string{d.ID + ": agrees, so it does not differ on purpose"}
	}
	return nil
}

// Summary says in a line how far the cases of a set agree.
func (l *Ledger) Summary(set string, results []*Result, deliberate []Deliberate) string {
	onPurpose := 0
	for _, r := range results {
		if !r.Agrees(ByAnswer.aspects()...) &&
			slices.ContainsFunc(deliberate, func(d Deliberate) bool { return d.ID == r.Case.ID }) {
			onPurpose++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d/%d code+reason+fields, %d differ on purpose, %d open", set,
		l.Agree[ByAnswer], l.Total[ByAnswer], onPurpose, l.Total[ByAnswer]-l.Agree[ByAnswer]-onPurpose)
	for _, m := range Measures()[1:] {
		fmt.Fprintf(&b, "; %s %d/%d", m, l.Agree[m], l.Total[m])
	}
	return b.String()
}

// ReadLedger reads a ledger from a file of lines "agree MEASURE N of TOTAL" and "open MEASURE CASE what is missing".
func ReadLedger(file string) (*Ledger, error) {
	l := &Ledger{Agree: map[Measure]int{}, Total: map[Measure]int{}, Open: map[Measure]map[string]string{}}
	return l, eachLine(file, func(line string) error {
		words := strings.Fields(line)
		if len(words) < 4 || !slices.Contains(Measures(), Measure(words[1])) {
			return fmt.Errorf("is neither an agree nor an open line")
		}
		m := Measure(words[1])
		switch words[0] {
		case "agree":
			var err error
			if len(words) != 5 {
				return fmt.Errorf("must be: agree MEASURE N of TOTAL")
			}
			if l.Agree[m], err = strconv.Atoi(words[2]); err != nil {
				return err
			}
			l.Total[m], err = strconv.Atoi(words[4])
			return err
		case "open":
			if !m.isNamed() {
				return fmt.Errorf("only the number of cases is held by %s", m)
			}
			if l.Open[m] == nil {
				l.Open[m] = map[string]string{}
			}
			l.Open[m][words[2]] = strings.Join(words[3:], " ")
			return nil
		}
		return fmt.Errorf("must start with agree or open")
	})
}

// Write records the ledger in a file, under a comment.
func (l *Ledger) Write(file, comment string) error {
	var b strings.Builder
	for _, line := range strings.Split(comment, "\n") {
		fmt.Fprintf(&b, "# %s\n", line)
	}
	for _, m := range Measures() {
		fmt.Fprintf(&b, "agree %s %d of %d\n", m, l.Agree[m], l.Total[m])
	}
	for _, m := range Measures() {
		for _, id := range slices.Sorted(maps.Keys(l.Open[m])) {
			fmt.Fprintf(&b, "open %s %s %s\n", m, id, l.Open[m][id])
		}
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// ReadDeliberate reads deliberate differences from a file of lines "CASE | CODE REASON | FIELDS | why".
func ReadDeliberate(file string) ([]Deliberate, error) {
	var all []Deliberate
	err := eachLine(file, func(line string) error {
		parts := strings.SplitN(line, "|", 4)
		if len(parts) != 4 {
			return fmt.Errorf("must be: CASE | CODE REASON | FIELDS | why")
		}
		d := Deliberate{ID: strings.TrimSpace(parts[0]), Fields: strings.Fields(parts[2]),
			Why: strings.TrimSpace(parts[3])}
		code, reason, _ := strings.Cut(strings.TrimSpace(parts[1]), " ")
		var err error
		if d.Code, err = strconv.Atoi(code); err != nil {
			return err
		}
		d.Reason = reason
		if d.ID == "" || d.Why == "" {
			return fmt.Errorf("must name a case and say why")
		}
		all = append(all, d)
		return nil
	})
	return all, err
}

// eachLine calls f with each line of a file that is neither empty nor a comment; errors name file and line.
func eachLine(file string, f func(line string) error) (err error) {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() {
		if e := in.Close(); err == nil {
			err = e
		}
	}()
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := f(line); err != nil {
			return fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
	return lines.Err()
}
