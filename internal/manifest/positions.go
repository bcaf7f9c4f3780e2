package manifest

import (
	"sort"
	"unicode/utf8"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// A position is a character of a file. Lines and columns count from 1; the zero value is the file as a whole.
type position struct{ line, column int }

// positionOf returns the position at which a node of YAML begins.
func positionOf(n *yaml.Node) position { return position{n.Line, n.Column} }

// positionTable is the table of the positions at which the members and items of a JSON text begin in the file.
type positionTable struct {
	marks   []mark   // by offset, one wherever the text of the file differs from the JSON
	letters []letter // by offset
	files   []origin // by offset, one wherever the file changes; nil: all is from one file
}

// An origin says that the members and items from an offset of the JSON on stand in a file.
type origin struct {
	offset uint32
	file   string
}

// A mark says where in the file the member or item begins that begins at an offset of the JSON. Up to the next mark the
// file has the characters of the JSON.
type mark struct{ offset, line, column uint32 }

// markEvery is how many bytes of JSON without a mark are looked through at most.
const markEvery = 1 << 14

// follows returns the position of what begins at an offset of the JSON, if the file has the characters of the JSON from
// the mark on.
func (m mark) follows(json []byte, offset int) position {
	return position{int(m.line), int(m.column) + utf8.RuneCount(json[m.offset:offset])}
}

// A letter is a boolean that the file writes as a letter, by which many writers mean the letter.
type letter struct {
	offset uint32
	char   byte
	isText bool // a string is expected there
}

// in returns the position of the member or item that begins at an offset of the JSON.
func (p *positionTable) in(json []byte, offset int) position {
	i := p.marksUpTo(offset)
	if i == 0 {
		return position{}
	}
	return p.marks[i-1].follows(json, offset)
}

// file returns the file of the member or item that begins at an offset of the JSON; "" if all is from one file.
func (p *positionTable) file(offset int) string {
	i := sort.Search(len(p.files), func(i int) bool { return int(p.files[i].offset) > offset })
	if i == 0 {
		return ""
	}
	return p.files[i-1].file
}

// marksUpTo returns how many marks stand at the offset or before it.
func (p *positionTable) marksUpTo(offset int) int {
	return sort.Search(len(p.marks), func(i int) bool { return int(p.marks[i].offset) > offset })
}

// lettersFrom returns the letters from an offset on.
func (p *positionTable) lettersFrom(offset int) []letter {
	return p.letters[sort.Search(len(p.letters), func(i int) bool { return int(p.letters[i].offset) >= offset }):]
}

// letterAt returns the letter that the boolean at an offset is written as, nil if it is not.
func (p *positionTable) letterAt(offset int) *letter {
	if from := p.lettersFrom(offset); len(from) > 0 && int(from[0].offset) == offset {
		return &from[0]
	}
	return nil
}
