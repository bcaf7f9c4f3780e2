package main

import (
	"go/scanner"
	"go/token"
	"strings"
	"unicode/utf8"
)

const (
	maxColumns = 120
	tabColumns = 4
	// maxLiteral is how wide a literal, or a word of a comment, may be before its line may be longer: it could not be
	// broken sensibly.
	maxLiteral = 80
)

// A piece is a token on a line, or what the line has of it.
type piece struct {
	token      token.Token
	start, end int // in the line
	text       string
}

// A line is a line of a file with its tokens.
type line struct {
	number int
	text   string
	pieces []piece
	// isInside is set if the line begins, or ends, within a literal or a comment of several lines.
	isInside bool
}

// read returns the lines of a file.
func read(src []byte) []line {
	texts := strings.Split(string(src), "\n")
	lines := make([]line, len(texts))
	for i, t := range texts {
		lines[i] = line{number: i + 1, text: t}
	}
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	for {
		at, kind, literal := s.Scan()
		if kind == token.EOF {
			return lines
		}
		if kind == token.SEMICOLON && literal == "\n" {
			continue
		}
		if literal == "" || kind.IsOperator() {
			literal = kind.String()
		}
		position := file.Position(at)
		first := &lines[position.Line-1]
		start := position.Column - 1
		if n := strings.Count(literal, "\n"); n > 0 {
			for i := range n + 1 {
				lines[position.Line-1+i].isInside = true
			}
			continue
		}
		first.pieces = append(first.pieces, piece{kind, start, start + len(literal), literal})
	}
}

// width is how many columns the line has. What gofmt has put between tokens to align them counts as one.
func (l *line) width() int {
	w := widthOf(l.text)
	for i, p := range l.pieces {
		if i > 0 {
			w -= max(p.start-l.pieces[i-1].end-1, 0)
		}
	}
	return w
}

// widthOf is how many columns a text has.
func widthOf(text string) int {
	return utf8.RuneCountInString(text) + (tabColumns-1)*strings.Count(text, "\t")
}

// isExempt reports whether the line may be longer: it has a literal or a word that could not be broken sensibly, or no
// place for a break.
func (l *line) isExempt() bool {
	if l.isInside {
		return true
	}
	for _, p := range l.pieces {
		switch p.token {
		case token.STRING:
			if widthOf(p.text) > maxLiteral {
				return true
			}
		case token.COMMENT:
			if strings.HasPrefix(p.text, "//go:") {
				return true
			}
			for _, word := range strings.Fields(p.text) {
				if widthOf(word) > maxLiteral {
					return true
				}
			}
		}
	}
	_, _, isComment := l.comment()
	return !isComment && l.broken() == l.text
}

// comment returns the comment that is the whole line, and what stands before it.
func (l *line) comment() (indent, text string, isOne bool) {
	if len(l.pieces) != 1 || l.pieces[0].token != token.COMMENT || !strings.HasPrefix(l.pieces[0].text, "//") {
		return "", "", false
	}
	return l.text[:l.pieces[0].start], l.pieces[0].text, true
}
