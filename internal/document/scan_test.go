package document

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// A plainReader reads a text onto a tape one byte after the other, with one call for each value:
// what the scanner must do, and nothing of how it does it fast.
type plainReader struct {
	src    []byte
	limits Limits
	tape   []entry
	keys   []string // decoded, of the entries
	wide   bool     // a key has bytes beyond ASCII, or escapes
}

// plainly reads one value, with whatever white space around it.
func plainly(src []byte, limits Limits) (*plainReader, *Error) {
	r := &plainReader{src: src, limits: limits.withDefaults(), tape: make([]entry, 1), keys: make([]string, 1)}
	i := r.blank(0)
	if i == len(src) {
		return r, &Error{Offset: i, Code: Syntax, Msg: "document must not be empty"}
	}
	i, err := r.value(i, 0, "", 1)
	if err == nil {
		if i = r.blank(i); i < len(src) {
			err = &Error{Offset: i, Code: Syntax, Msg: unexpected(src, i, "the end of the document")}
		}
	}
	return r, err
}

func (r *plainReader) blank(i int) int {
	for i < len(r.src) && strings.IndexByte(" \t\r\n", r.src[i]) >= 0 {
		i++
	}
	return i
}

// is reports whether the byte at i is c.
func (r *plainReader) is(i int, c byte) bool { return i < len(r.src) && r.src[i] == c }

func (r *plainReader) value(i int, x uint32, path string, depth int) (int, *Error) {
	fail := func(i int, path string, code ErrorCode, msg string) (int, *Error) {
		return i, &Error{Offset: i, Path: path, Code: code, Msg: msg}
	}
	r.tape[x].off = uint32(i)
	object := r.src[i] == '{'
	if !object && r.src[i] != '[' {
		end, flags, code, msg := scanScalar(r.src, i)
		if msg != "" {
			return fail(end, path, code, msg)
		}
		r.tape[x].end = uint32(end)
		r.tape[x].meta |= flags
		return end, nil
	}
	if depth > r.limits.Depth {
		return fail(i, path, TooDeep, msgTooDeep(r.limits.Depth))
	}
	kind, closing, required := Array, byte(']'), "a value"
	if object {
		kind, closing, required = Object, '}', "a key in double quotes"
	}
	r.tape[x].meta |= uint32(kind)
	seen := map[string]bool{}
	again := uint32(0)
	i = r.blank(i + 1)
	for first := true; !first || !r.is(i, closing); first = false {
		if i >= len(r.src) {
			return fail(i, path, Syntax, unexpected(r.src, i, required))
		}
		child := uint32(len(r.tape))
		if int(child) >= r.limits.Nodes {
			return fail(i, path, TooManyNodes, msgTooMany(r.limits.Nodes))
		}
		if object && r.src[i] != '"' {
			return fail(i, path, Syntax, unexpected(r.src, i, required))
		}
		r.tape, r.keys = append(r.tape, entry{parent: x}), append(r.keys, "")
		below := string(AppendPathIndex([]byte(path), int(r.tape[x].count)))
		if object {
			end, flags, code, msg := scanString(r.src, i+1)
			if msg == "" && flags&flagNUL != 0 {
				end, code, msg = i+1, Encoding, msgKeyNUL
			}
			if msg != "" {
				return fail(end, path, code, msg)
			}
			t := &r.tape[child]
			t.key, t.keyEnd, t.meta = uint32(i+1), uint32(end), flagMember
			if flags != 0 {
				t.meta |= flagKeyEscaped
			}
			key := string(appendDecoded(nil, r.src[i+1:end]))
			r.keys[child], t.hash = key, hashString(key)
			r.wide = r.wide || flags != 0 || !isASCII(key)
			below = string(AppendPathKey([]byte(path), key))
			if seen[key] && again == 0 {
				again = child
			}
			// An object with few members is refused at once, else at its end.
			if again != 0 && r.tape[x].count < indexFrom {
				return fail(i, below, Duplicate, msgDuplicate(r.src, t))
			}
			seen[key] = true
			if i = r.blank(end + 1); !r.is(i, ':') {
				return fail(i, below, Syntax, unexpected(r.src, i, "':'"))
			}
			if i = r.blank(i + 1); i >= len(r.src) {
				return fail(i, below, Syntax, unexpected(r.src, i, "a value"))
			}
		}
		if last := r.tape[x].last; last != 0 {
			r.tape[last].next = child
		}
		r.tape[x].last = child
		r.tape[x].count++
		var err *Error
		if i, err = r.value(i, child, below, depth+1); err != nil {
			return i, err
		}
		if i = r.blank(i); !r.is(i, ',') {
			break
		}
		i = r.blank(i + 1)
	}
	if !r.is(i, closing) {
		return fail(i, path, Syntax, unexpected(r.src, i, wantNext(object)))
	}
	if again != 0 {
		below := string(AppendPathKey([]byte(path), r.keys[again]))
		return fail(int(r.tape[again].key)-1, below, Duplicate, msgDuplicate(r.src, &r.tape[again]))
	}
	r.tape[x].end = uint32(i + 1)
	return i + 1, nil
}

// checkScan compares the tape, or the error, with those of the plainReader. The scanner must read no byte outside the
// text.
func checkScan(t *testing.T, text []byte, limits Limits) {
	t.Helper()
	want, refused := plainly(text, limits)
	for _, isFirst := range []bool{true, false} {
		checkScanned(t, text, limits, want, refused, isFirst)
	}
}

func checkScanned(t *testing.T, text []byte, limits Limits, want *plainReader, refused *Error, isFirst bool) {
	t.Helper()
	text, done := fenced(t, text, isFirst)
	defer done()
	d, err := Parse(text, limits)
	if err != nil || refused != nil {
		if err == nil || refused == nil || *err.(*Error) != *refused {
			t.Fatalf("%q: got %+v, want %+v", text, err, refused)
		}
		return
	}
	defer d.Release()
	if len(d.tape) != len(want.tape) {
		t.Fatalf("%q: %d entries, want %d", text, len(d.tape), len(want.tape))
	}
	for i := range d.tape {
		got, w := d.tape[i], want.tape[i]
		if got.meta&flagIndexed != 0 {
			got.last = d.index[got.last]
			got.meta &^= flagIndexed
		}
		if Kind(w.meta&kindMask) < Object {
			got.last, got.count = 0, 0 // not in use
		}
		if w.meta&flagMember == 0 {
			got.key, got.keyEnd, got.hash = 0, 0, 0 // the same
		}
		if i == 0 {
			got.parent, got.next = 0, 0 // the same
		}
		if got != w {
			t.Fatalf("%q: entry %d: %+v, want %+v", text, i, got, w)
		}
	}
	if !d.alike && (want.wide || hasTwins(d.Root())) {
		t.Fatalf("%q: keys are not alike", text)
	}
}

// FuzzScan compares the scanner with the plainReader, also behind a long text.
func FuzzScan(f *testing.F) {
	for _, body := range editBodies {
		f.Add([]byte(body), uint16(1100))
	}
	for _, shape := range shapes(f) {
		if len(shape.body) < 10_000 {
			f.Add(shape.body, uint16(3000))
		}
	}
	f.Add([]byte(`{"aaaaaaaa":1,"aaaaaaaaaaaaaaaa":2,"aaaaaaa\u0061":3}`), uint16(60))
	f.Fuzz(func(t *testing.T, text []byte, before uint16) {
		checkScan(t, text, Limits{Depth: 8, Nodes: 200})
		long := strings.Repeat("x", int(before%4096))
		checkScan(t, slices.Concat([]byte(`["`), []byte(long), []byte(`",`), text, []byte("]")),
			Limits{Depth: 9, Nodes: 202})
	})
}

// What is written of these pieces in any order, most of it not JSON, is read as plainly, and so
// are texts in which a byte is another one, or after which they end.
func TestScan(t *testing.T) {
	pieces := []string{
		"{", "}", "[", "]", ",", ":", " ", "\n    ", "\t", `"`, `\`, `\u0061`, `\n`, "\x01", "é", "数", "😀", "\xff",
		`""`, `"a"`, `"A"`, `"\u0061"`, `"é"`, `"seven77"`, `"eight888"`, `"nine99999"`, `"Nine99999"`,
		`"fifteen15151515"`,
		`"sixteen161616161"`, `"seventeen17171717"`, `"SEVENTEEN17171717"`,
		`"a text that is longer than several words"`,
		"0", "-1", "12", "1234567", "12345678", "123456789", "01", "1.5", "-0.25e-7", "1e400", "true", "false", "null",
		"tru",
		`{"a":1}`, `{"a":1,"b":"x","c":[true,{}]}`, `[1,2,"x"]`, `"k":`, `"k": "v",`, `"k2":{"a":`, `,"k3":[`,
	}
	random := rand.New(rand.NewPCG(1, 2))
	rounds := 200_000
	if testing.Short() {
		rounds = 20_000
	}
	for range rounds {
		var b strings.Builder
		for range 1 + random.IntN(12) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		checkScan(t, []byte(b.String()), Limits{Depth: 4, Nodes: 12})
	}
	for _, shape := range shapes(t) {
		checkScan(t, shape.body, Limits{})
		if len(shape.body) > 10_000 {
			continue
		}
		checkScan(t, append(shape.body[:len(shape.body):len(shape.body)], "\n  "...), Limits{Depth: 3})
		for i := range shape.body {
			checkScan(t, shape.body[:i:i], Limits{})
			other := []byte(string(shape.body))
			other[i] = "\" \\,:{}[]\x80\x1f0e"[random.IntN(13)]
			checkScan(t, other, Limits{})
		}
	}
}

// Strings and keys of any length are read from any offset, and what stands behind them.
func TestScanOfLongTexts(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 7
	}
	text := strings.Repeat("abcdefg ", 400)
	for size := 0; size < len(text); size += step {
		for _, before := range []int{0, 1, size % 61, 1000 + size%67} {
			for _, format := range []string{
				`["%s","%s",1]`, `["%s",{"%s":1.5},-1]`, `["%s","%s\\n",{"a":"é"}]`, `["%s","%s","b"]`,
				`["%s",{"%s":1,"":"\\""}]`,
			} {
				checkScan(t, fmt.Appendf(nil, format, text[:before], text[:size]), Limits{})
			}
		}
		checkScan(t, fmt.Appendf(nil, `["%s`, text[:size]), Limits{})
	}
}

// Objects of any size have each of their members, and no key twice.
func TestScanOfManyMembers(t *testing.T) {
	for n := range 70 {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"%s%d":[{}]`, strings.Repeat("k", i%20), i)
		}
		text := `{"":0` + b.String()
		checkScan(t, []byte(text+"}"), Limits{})
		checkScan(t, []byte(`[`+text+`,"Kk2":{}},1]`), Limits{})
		for i := range n {
			checkScan(t, fmt.Appendf(nil, `%s,"%s%d":1}`, text, strings.Repeat("k", i%20), i), Limits{})
		}
	}
}

// Characters beyond ASCII are as package utf8 reads them, alone and with more behind them.
func TestScanWide(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 7
	}
	for i := 0x80 << 16; i <= 0xffffff; i += step {
		a, b, c := byte(i>>16), byte(i>>8), byte(i)
		for _, text := range [][]byte{{a, b, c}, {a, b, c, 0x80}, {0xc3, 0xa4, a, b, c}} {
			want := 0
			for want < len(text) && text[want] >= utf8.RuneSelf {
				r, size := utf8.DecodeRune(text[want:])
				if r == utf8.RuneError && size == 1 {
					break
				}
				want += size
			}
			if got := skipWide(text, 0); got != want {
				t.Fatalf("% x: %d bytes, want %d", text, got, want)
			}
		}
	}
}
