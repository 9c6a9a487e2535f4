package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// root is the project folder, relative to this one.
const root = "../.."

// section is the part of a page from a heading to the next. If a page does not begin with a heading, its first
// section has none.
type section struct {
	level   int // number of "#"
	heading string
	prose   string   // the text including the heading, with a marker in place of each code block
	blocks  []string // the code blocks including the fences
}

// blockMark is the placeholder of a code block in prose. No page contains it.
const blockMark = "\x00\n"

var headingLine = regexp.MustCompile("^(#+) (.*)\n")

// sections splits a page at its headings.
func sections(text string) []section {
	var all []section
	s := section{}
	block := ""
	for line := range strings.Lines(text) {
		fenced := strings.HasPrefix(line, "```")
		switch {
		case fenced && block != "":
			s.blocks = append(s.blocks, block+line)
			s.prose += blockMark
			block = ""
			continue
		case fenced || block != "":
			block += line
			continue
		}
		if m := headingLine.FindStringSubmatch(line); m != nil {
			if strings.TrimSpace(s.prose) != "" {
				all = append(all, s)
			}
			s = section{level: len(m[1]), heading: m[2]}
		}
		s.prose += line
	}
	s.prose += block // a block that is not closed
	return append(all, s)
}

// digest identifies the text of a section. Code blocks do not count because a translation has the same ones.
func (s section) digest() string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(s.prose)))[:12]
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// code lists the inline code of a section's prose, without duplicates.
func (s section) code() []string {
	var all []string
	for _, m := range codeSpan.FindAllStringSubmatch(s.prose, -1) {
		all = append(all, strings.Join(strings.Fields(m[1]), " "))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// target is the target of a link: a file, relative to the project folder, and optionally the anchor of a heading.
type target struct{ file, anchor string }

// links lists the relative links of a section of the named page.
func (s section) links(file string) []target {
	var all []target
	for _, m := range link.FindAllStringSubmatch(s.prose, -1) {
		if strings.Contains(m[1], "://") {
			continue
		}
		to, anchor, _ := strings.Cut(m[1], "#")
		if to == "" {
			to = path.Base(file)
		}
		all = append(all, target{path.Join(path.Dir(file), to), anchor})
	}
	return all
}

// anchors returns the anchors of the sections, as sites that render Markdown generate them: the letters and digits
// of the heading in lower case, with hyphens for blanks.
func anchors(page []section) []string {
	var all []string
	for _, s := range page {
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsNumber(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, s.heading))
	}
	return all
}

// TestLinksLeadSomewhere checks that the relative links of all pages, written by hand or generated, lead to
// existing files and headings.
func TestLinksLeadSomewhere(t *testing.T) {
	files := markdown(t)
	for _, file := range files {
		for _, s := range sections(read(t, file)) {
			for _, to := range s.links(file) {
				if _, err := os.Stat(filepath.Join(root, to.file)); err != nil {
					t.Errorf("%s: the link to %s leads nowhere", file, to.file)
					continue
				}
				if to.anchor != "" && !slices.Contains(anchors(sections(read(t, to.file))), to.anchor) {
					t.Errorf("%s: the link to %s leads to no heading of %s", file, "#"+to.anchor, to.file)
				}
			}
		}
	}
}

// TestBlocksAreClosed finds code blocks that are not closed: the rest of the page would be rendered as code.
func TestBlocksAreClosed(t *testing.T) {
	for _, file := range markdown(t) {
		if heading, ok := unclosed(read(t, file)); ok {
			t.Errorf("%s: a block of code below %q is not closed", file, heading)
		}
	}
	for text, want := range map[string]bool{"# a\n```sh\nx\n```\n": false, "# a\n```sh\nx\n": true} {
		if _, got := unclosed(text); got != want {
			t.Errorf("%q is not closed: %v", text, got)
		}
	}
}

// unclosed returns the heading above a code block that is not closed.
func unclosed(page string) (heading string, found bool) {
	for _, s := range sections(page) {
		if strings.HasPrefix(s.prose, "```") || strings.Contains(s.prose, "\n```") {
			return s.heading, true
		}
	}
	return "", false
}

// read returns the text of a project file.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// markdown lists the pages of the manual, relative to the project folder.
func markdown(t *testing.T) []string {
	t.Helper()
	files := []string{"README.md", "CONTRIBUTING.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md", "docs/*/*/*.md"} {
		files = append(files, glob(t, pattern)...)
	}
	for _, sample := range []string{"docs/guides/cluster.md", "docs/reference/modules/copy.md"} {
		if !slices.Contains(files, sample) {
			t.Fatalf("%s was not found: is the test still two folders below the root?", sample)
		}
	}
	return files
}

// glob lists project files, relative to the project folder.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range found {
		rel, err := filepath.Rel(root, f)
		if err != nil {
			t.Fatal(err)
		}
		found[i] = filepath.ToSlash(rel)
	}
	return found
}
