package main

import "testing"

func TestCount(t *testing.T) {
	const page = "# A page\n\nfour words of text\n\n```sh\nrun this\n```\n\n| a | b |\n|---|---|\n\n" +
		"| metric | labels | is |\n| c | d | e |\n\nmore\n\n<!-- fields of policies/crds/a.yaml -->\n\nmade of code\n\n<!-- end of fields -->\n\nend\n"
	if got, want := count("docs/a.md", page), (words{text: 8, tables: 2, ofCode: 9, blocks: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := count("docs/messages.md", "| a | b |\n"), (words{ofCode: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestLimit: the text of all pages has no more words than the limit.
func TestLimit(t *testing.T) {
	all, err := pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 30 {
		t.Fatalf("only %d pages were found", len(all))
	}
	var sum words
	for _, w := range all {
		sum.add(w)
	}
	if sum.text > limit {
		t.Errorf("the text of the pages has %d words, want at most %d", sum.text, limit)
	}
}
