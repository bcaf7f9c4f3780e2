package manifest

import "sort"

// places is the table of lines of a JSON text: the first lines of its members and items in the
// file.
type places struct {
	marks   []mark   // by offset, one wherever the line changes
	letters []letter // by offset
	files   []origin // by offset, one wherever the file changes; nil: all is from one file
}

// An origin says that the members and items from an offset of the JSON on stand in a file.
type origin struct {
	offset uint32
	file   string
}

// A mark says that the members and items from an offset of the JSON on stand on a line of the file.
type mark struct{ offset, line uint32 }

// A letter is a boolean that the file writes as a letter, by which many writers mean the letter.
type letter struct {
	offset uint32
	char   byte
	isText bool // a string is expected there
}

// line returns the line of the member or item that begins at an offset of the JSON.
func (p *places) line(offset int) int {
	i := p.marksUpTo(offset)
	if i == 0 {
		return 0
	}
	return int(p.marks[i-1].line)
}

// file returns the file of the member or item that begins at an offset of the JSON; "" if all is from one file.
func (p *places) file(offset int) string {
	i := sort.Search(len(p.files), func(i int) bool { return int(p.files[i].offset) > offset })
	if i == 0 {
		return ""
	}
	return p.files[i-1].file
}

// marksUpTo returns how many marks stand at the offset or before it.
func (p *places) marksUpTo(offset int) int {
	return sort.Search(len(p.marks), func(i int) bool { return int(p.marks[i].offset) > offset })
}

// lettersFrom returns the letters from an offset on.
func (p *places) lettersFrom(offset int) []letter {
	return p.letters[sort.Search(len(p.letters), func(i int) bool { return int(p.letters[i].offset) >= offset }):]
}

// letterAt returns the letter that the boolean at an offset is written as, nil if it is not.
func (p *places) letterAt(offset int) *letter {
	if from := p.lettersFrom(offset); len(from) > 0 && int(from[0].offset) == offset {
		return &from[0]
	}
	return nil
}
