package report

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"path"
	"slices"
	"strings"

	"kubekey/pkg/ui"
)

//go:embed page
var files embed.FS

// scripts are the parts of the page's script, in the order in which they are
// joined to one module.
var scripts = []string{"dom.js", "run.js", "scale.js", "timeline.js", "gestures.js", "details.js", "sections.js",
	"main.js"}

// page puts the document together.
func (b *builder) page() ([]byte, error) {
	b.close()
	data, err := b.data()
	if err != nil {
		return nil, err
	}
	skeleton, style, script, err := parts()
	if err != nil {
		return nil, err
	}
	page := strings.NewReplacer(
		"@TITLE@", html.EscapeString(ui.Inline(b.title())),
		"@POLICY@", policy(script, style),
		"@STYLE@", style,
		"@SCRIPT@", script,
		"@DATA@", data,
	).Replace(skeleton)
	return []byte(page), nil
}

func parts() (skeleton, style, script string, err error) {
	read := func(name string) string {
		text, e := files.ReadFile(path.Join("page", name))
		if e != nil && err == nil {
			err = e
		}
		return string(text)
	}
	skeleton, style = read("page.html"), read("page.css")
	for _, name := range scripts {
		script += read(name)
	}
	return skeleton, style, script, err
}

func (b *builder) title() string {
	var names []string
	for _, p := range b.doc.Run.Playbooks {
		names = append(names, path.Base(p))
	}
	return strings.Join(names, ", ") + " · " + b.doc.Run.ID
}

// policy allows only this script and this style: no request, no frame, no form, no markup from
// text.
func policy(script, style string) string {
	return fmt.Sprintf("default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; base-uri 'none'; "+
		"form-action 'none'; "+
		"require-trusted-types-for 'script'; trusted-types 'none'", digest(script), digest(style))
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// data is the elements that contain the run: the document, then its details in parts that are
// parsed on demand.
func (b *builder) data() (string, error) {
	parts := []any{b.doc}
	for chunk := range slices.Chunk(b.details.list, chunkSize) {
		parts = append(parts, chunk)
	}
	texts, size := make([][]byte, len(parts)), 0
	for i, part := range parts {
		text, err := json.Marshal(part) // escapes <, >, & and the line separators of JavaScript
		if err != nil {
			return "", err
		}
		texts[i] = text
		size += len(text)
	}
	var out strings.Builder
	for i, text := range texts {
		class, encoding := "details", ""
		if i == 0 {
			class = "run"
		}
		if size > packFrom {
			encoding = ` data-encoding="gzip"`
			var err error
			if text, err = pack(text); err != nil {
				return "", err
			}
		}
		fmt.Fprintf(&out, "<script type=\"application/json\" class=%q%s>%s</script>\n", class, encoding, text)
	}
	return out.String(), nil
}

// packFrom is the size in bytes above which data is compressed. A run of 500 hosts and 300 tasks
// then needs a tenth of its size; a small one remains readable.
const packFrom = 256 << 10

func pack(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return []byte(base64.StdEncoding.EncodeToString(packed.Bytes())), nil
}
