package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/admission-gateway/gateway/internal/outbound"
	"github.com/admission-gateway/gateway/internal/quote"
	"github.com/admission-gateway/gateway/internal/scaffold"
	"github.com/admission-gateway/gateway/policies/source"
)

// fetchTimeout bounds how long a document is fetched.
const fetchTimeout = time.Minute

// writeFrom writes policies for an API that is described already.
func (f *initFlags) writeFrom(cmd *cobra.Command, dir string) error {
	if f.backend != "" || f.enforce != "" {
		return usageError("--from may not be set together with --backend or --enforce")
	}
	if isArchive(f.from) {
		return f.writeFromArchive(cmd, dir)
	}
	d, copied, err := f.document(dir)
	if err != nil {
		return &failure{exitUsage, fmt.Errorf("--from: %w", err)}
	}
	made, err := scaffold.ForDocument(d)
	var refused scaffold.Refusal
	switch {
	case errors.As(err, &refused):
		for i := range refused { // the copy is not written
			if len(copied) > 0 && refused[i].File == d.Files[0].Name {
				refused[i].File = f.from
			}
		}
		return &failure{exitFailure, err}
	case err != nil:
		return &failure{exitUsage, fmt.Errorf("--from: '%s' %w", f.from, err)}
	}
	files := maps.Clone(made.Files)
	maps.Copy(files, copied)
	return f.writeMade(cmd, dir, made, files)
}

// isArchive reports whether a name is that of an HTTP archive.
func isArchive(name string) bool { return strings.EqualFold(filepath.Ext(name), ".har") }

// writeFromArchive writes policies for an API whose requests were recorded.
func (f *initFlags) writeFromArchive(cmd *cobra.Command, dir string) error {
	if f.isVendors {
		return usageError("--vendor: an HTTP archive is no document: what is made of it is observed first anyway")
	}
	if _, isURL := addressOf(f.from); isURL {
		return usageError("--from: an HTTP archive must be a file, not '%s'", f.from)
	}
	data, err := readArchive(f.from)
	if err != nil {
		return &failure{exitUsage, fmt.Errorf("--from: %w", err)}
	}
	made, err := scaffold.ForArchive(f.from, dir, data)
	if err != nil {
		return &failure{exitUsage, fmt.Errorf("--from: '%s' %w", f.from, err)}
	}
	return f.writeMade(cmd, dir, made, made.Files)
}

// readArchive reads an HTTP archive, which may be larger than a document.
func readArchive(name string) (data []byte, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if data, err = io.ReadAll(io.LimitReader(file, scaffold.MaxArchive+1)); err != nil {
		return nil, err
	}
	if len(data) > scaffold.MaxArchive {
		return nil, fmt.Errorf("'%s' is an archive of more than %d bytes: record less at a time", name,
			scaffold.MaxArchive)
	}
	return data, nil
}

// writeMade writes policy files, and says what was written and what comes next.
func (f *initFlags) writeMade(cmd *cobra.Command, dir string, made *scaffold.Policies, files map[string][]byte) error {
	if err := writeAll(dir, files); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		cmd.Println(filepath.Join(dir, name))
	}
	for _, remark := range made.Remarks {
		cmd.Println(remark)
	}
	check := "gateway check"
	if _, isURL := addressOf(f.from); f.isVendors || isURL {
		check += " --strict=false" // the team cannot mend what the document lacks
	}
	cmd.Printf("%s written, %s among them.\n\n  %s %s\n", quote.Count(len(files), "file"),
		quote.Count(made.Cases, "test case"), check, dir)
	if made.Cases > 0 {
		cmd.Printf("  gateway test %s\n", dir)
	}
	upstream := made.Upstream
	if at, isURL := addressOf(f.from); isURL {
		upstream = cmp.Or(upstream, at.Scheme+"://"+at.Host)
	}
	cmd.Printf("  gateway serve --upstream %s --policies %s\n", cmp.Or(upstream, "http://127.0.0.1:9000"), dir)
	return nil
}

// addressOf returns what --from says as a URL of a server.
func addressOf(from string) (*url.URL, bool) {
	at, err := url.Parse(from)
	return at, err == nil && (at.Scheme == "http" || at.Scheme == "https") && at.Host != ""
}

// document reads the document, and returns what of it is copied into the folder.
func (f *initFlags) document(dir string) (d *scaffold.Document, copied map[string][]byte, err error) {
	at, isURL := addressOf(f.from)
	if isURL {
		data, err := download(at)
		if err != nil {
			return nil, nil, err
		}
		name := documentName(path.Base(at.Path), data)
		file := source.File{Name: filepath.Join(dir, name), Data: data, Root: dir}
		return &scaffold.Document{Name: name, Files: []source.File{file}, Dir: dir}, map[string][]byte{name: data}, nil
	}
	if info, err := os.Stat(f.from); err == nil && info.IsDir() {
		return nil, nil, fmt.Errorf("'%s' must be a file", f.from)
	}
	if !source.IsManifest(f.from) {
		return nil, nil, fmt.Errorf("'%s' must be a file whose name ends in '.yaml', '.yml' or '.json', or a URL",
			f.from)
	}
	read := source.Read([]string{f.from}, &source.Progress{})
	name := filepath.Clean(f.from)
	own := slices.IndexFunc(read.Files, func(file source.File) bool { return file.Name == name })
	if len(read.Found) > 0 || own < 0 {
		for _, found := range read.Found {
			return nil, nil, errors.New(found.Text())
		}
		return nil, nil, fmt.Errorf("'%s' must be a file that can be read", f.from)
	}
	files := read.Files
	files[0], files[own] = files[own], files[0]
	d = &scaffold.Document{Files: files, Dir: dir, IsOwn: !f.isVendors}
	if d.Name, err = within(dir, name); err == nil {
		return d, nil, nil
	}
	for range source.Mentioned(name, files[0].Data) {
		return nil, nil, fmt.Errorf("'%s' refers to other files: name the folder '%s', in which it stands, for the policies too", f.from, filepath.Dir(name))
	}
	d.Name = filepath.Base(name)
	d.Files = []source.File{{Name: filepath.Join(dir, d.Name), Data: files[0].Data, Root: dir}}
	return d, map[string][]byte{d.Name: files[0].Data}, nil
}

// errOutside is the error of a file that is in no folder of policy files.
var errOutside = errors.New("the file is not in the folder")

// within returns the path of a file from a folder that it is in.
func within(dir, name string) (string, error) {
	folder, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	file, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	rest, err := filepath.Rel(folder, file)
	if err != nil || !filepath.IsLocal(rest) {
		return "", errOutside
	}
	return rest, nil
}

// documentName returns the name of the file for a document that was fetched.
func documentName(base string, data []byte) string {
	base = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '-'
	}, strings.TrimLeft(base, "/."))
	base = cmp.Or(base, "openapi")
	if source.IsManifest(base) {
		return base
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return base + ".json"
	}
	return base + ".yaml"
}

// download reads a document from a server.
func download(at *url.URL) (data []byte, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	client := outbound.New(outbound.Options{Timeout: fetchTimeout, MaxBytes: scaffold.MaxBytes, Redirects: true})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("'%s' is answered with '%s'", at.Redacted(), answer.Status)
	}
	data, err = io.ReadAll(answer.Body)
	var large *outbound.TooLargeError
	if errors.As(err, &large) {
		return nil, fmt.Errorf("'%s' is a document of more than %d bytes", at.Redacted(), large.MaxBytes)
	}
	return data, err
}
