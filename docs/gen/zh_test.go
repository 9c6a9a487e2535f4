package main

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var translated = flag.Bool("translated", false, "the pages in Chinese say what the English ones say now: note that in them")

// TestZh compares the pages in Chinese, which people translate, with the
// English ones, section by section. A page begins with a comment that tells
// what it was translated from: the English page, and for each of its sections
// a digest of the text at that time.
//
//	<!-- docs/guides/cluster.md
//	f4a1c09d3b7e Clusters
//	0b6a3d5f8812 The inventory
//	-->
//
// With -update, blocks of code are taken over from the English page.
func TestZh(t *testing.T) {
	english := append([]string{"README.md"}, glob(t, "docs/guides/*.md")...)
	for _, file := range english {
		t.Run(path.Base(file), func(t *testing.T) { checkTranslation(t, file) })
	}
	for _, file := range glob(t, "docs/zh/*") {
		if !slices.ContainsFunc(english, func(e string) bool { return chinese(e) == file }) {
			t.Errorf("%s is the translation of no page", file)
		}
	}
}

// chinese is the path of the page in Chinese.
func chinese(english string) string { return path.Join("docs/zh", path.Base(english)) }

func checkTranslation(t *testing.T, file string) {
	full := filepath.Join(root, chinese(file))
	if _, err := os.Stat(full); os.IsNotExist(err) {
		t.Fatalf("%s has no page in Chinese, %s", file, chinese(file))
	}
	en, text := sections(read(t, file)), read(t, chinese(file))
	zh := translation(text)
	if *update {
		zh.takeBlocks(en)
	}
	if *translated {
		zh.origin = origin(file, en)
	}
	for _, p := range zh.problems(file, en) {
		t.Errorf("%s: %s", chinese(file), p)
	}
	if now := zh.text(); now != text && (*update || *translated) {
		if err := os.WriteFile(full, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// zhPage is a page in Chinese: the comment that it begins with, and the rest.
type zhPage struct {
	origin   string
	sections []section
}

var comment = regexp.MustCompile(`(?s)\A<!--.*?-->\n\n?`)

func translation(text string) zhPage {
	c := comment.FindString(text)
	return zhPage{c, sections(text[len(c):])}
}

// origin is the comment of a page that was translated from these sections.
func origin(file string, english []section) string {
	text := "<!-- " + file + "\n"
	for _, s := range english {
		text += s.digest() + " " + s.heading + "\n"
	}
	return text + "-->\n\n"
}

// takeBlocks makes the blocks of code those of the English page, where there
// are as many.
func (p zhPage) takeBlocks(en []section) {
	for i := range min(len(en), len(p.sections)) {
		if len(p.sections[i].blocks) == len(en[i].blocks) {
			p.sections[i].blocks = en[i].blocks
		}
	}
}

// text is what the page was cut from.
func (p zhPage) text() string {
	var b strings.Builder
	b.WriteString(p.origin)
	for _, s := range p.sections {
		for i, part := range strings.Split(s.prose, blockMark) {
			if i > 0 {
				b.WriteString(s.blocks[i-1])
			}
			b.WriteString(part)
		}
	}
	return b.String()
}

// problems tells where the page is not that of the English sections.
func (p zhPage) problems(file string, en []section) []string {
	var all []string
	if stale := outOfStep(p.origin, origin(file, en)); len(stale) > 0 {
		all = append(all, fmt.Sprintf("not in step with %s:\n  %s\ntranslate what changed there (git log -p %s), then: go test ./docs/gen -run Zh/%s -translated",
			file, strings.Join(stale, "\n  "), file, path.Base(file)))
	}
	if z, e := outline(p.sections), outline(en); z != e {
		return append(all, fmt.Sprintf("headings of the levels %s, in English %s", z, e))
	}
	for i, s := range p.sections {
		for _, d := range differences(file, en[i], s) {
			all = append(all, fmt.Sprintf("%q (%q): %s", s.heading, en[i].heading, d))
		}
	}
	return all
}

// outOfStep compares the comment of a page with what it would be now, and
// names the sections.
func outOfStep(then, now string) []string {
	if then == now {
		return nil
	}
	var all []string
	old, current := strings.Split(then, "\n"), strings.Split(now, "\n")
	for _, l := range current {
		if !slices.Contains(old, l) {
			all = append(all, "new or changed: "+heading(l))
		}
	}
	for _, l := range old {
		if !slices.ContainsFunc(current, func(c string) bool { return heading(c) == heading(l) }) {
			all = append(all, "gone: "+heading(l))
		}
	}
	if all == nil {
		all = append(all, "the order of its sections has changed")
	}
	return all
}

// heading is a line of the comment without the digest.
func heading(line string) string {
	_, h, _ := strings.Cut(line, " ")
	return h
}

// outline tells the levels of the headings.
func outline(page []section) string {
	levels := make([]int, len(page))
	for i, s := range page {
		levels[i] = s.level
	}
	return fmt.Sprint(levels)
}

var items = regexp.MustCompile(`(?m)^\s*(\||- |\d+\. )`)

// differences holds a section against the English one: the blocks of code,
// the words that are code, the links, and how many rows and items there are.
func differences(file string, en, zh section) []string {
	all := slices.Concat(unlike("code", en.code(), zh.code()),
		unlike("a link to", expectedLinks(file, en), linkedFiles(chinese(file), zh)))
	if !slices.Equal(en.blocks, zh.blocks) {
		all = append(all, "the blocks of code are not the English ones; if there are as many: go test ./docs/gen -run Zh -update")
	}
	if e, z := len(items.FindAllString(en.prose, -1)), len(items.FindAllString(zh.prose, -1)); e != z {
		all = append(all, fmt.Sprintf("%d rows of tables and items of lists, in English %d", z, e))
	}
	return all
}

// unlike says which names are in one section and not in the other.
func unlike(what string, en, zh []string) []string {
	var all []string
	for _, n := range en {
		if !slices.Contains(zh, n) {
			all = append(all, fmt.Sprintf("lacks %s %s", what, n))
		}
	}
	for _, n := range zh {
		if !slices.Contains(en, n) {
			all = append(all, fmt.Sprintf("has %s %s, which the English text does not have", what, n))
		}
	}
	return all
}

// expectedLinks are the files that a section leads to when it is translated:
// the pages in Chinese where there are such. Below its title, a page in Chinese
// has a link to the English one; of those, only README.md has one back.
func expectedLinks(file string, en section) []string {
	var files []string
	if en.level == 1 {
		files = append(files, file)
	}
	for _, to := range linkedFiles(file, en) {
		switch {
		case to == "docs/zh/README.md":
			continue
		case to == "README.md", path.Dir(to) == "docs/guides":
			to = chinese(to)
		}
		files = append(files, to)
	}
	return files
}

func linkedFiles(file string, s section) []string {
	var files []string
	for _, to := range s.links(file) {
		files = append(files, to.file)
	}
	return files
}

// TestZhTellsWhatDiffers edits a page or its translation, and looks for what
// is said of it.
func TestZhTellsWhatDiffers(t *testing.T) {
	const file = "docs/guides/sample.md"
	const english = "# Sample\n\nSee [more](cluster.md#a).\n\n## Run it\n\n- With `--yes`.\n\n```sh\nkk run # go\n```\n"
	const body = "# 示例\n\n[English](../guides/sample.md)\n\n参见[更多](cluster.md#a)。\n\n## 运行\n\n- 使用 `--yes`。\n\n```sh\nkk run # go\n```\n"
	chinese := origin(file, sections(english)) + body
	type edit struct{ old, new string }
	for _, c := range []struct {
		name   string
		en, zh edit
		want   string
	}{
		{name: "as it is"},
		{name: "the English text changed", en: edit{"With", "Without"}, want: "new or changed: Run it"},
		{name: "a section is new", en: edit{"## Run it", "## First\n\nx\n\n## Run it"}, want: "new or changed: First"},
		{name: "a section is gone", en: edit{"# Sample\n\nSee [more](cluster.md#a).\n\n", ""}, want: "gone: Sample"},
		{name: "only a command changed", en: edit{"kk run # go", "kk run -v"}, want: "the blocks of code are not"},
		{name: "a comment in a block was translated", zh: edit{"# go", "# 运行"}, want: "the blocks of code are not"},
		{name: "a heading of another level", zh: edit{"## 运行", "### 运行"}, want: "headings of the levels [1 3], in English [1 2]"},
		{name: "an item is missing", zh: edit{"- 使用", "使用"}, want: "0 rows of tables and items of lists, in English 1"},
		{name: "a flag is missing", zh: edit{"`--yes`", "它"}, want: "lacks code --yes"},
		{name: "a flag is another", zh: edit{"`--yes`", "`--no`"}, want: "has code --no"},
		{name: "a link to an English guide", zh: edit{"(cluster.md", "(../guides/cluster.md"}, want: "lacks a link to docs/zh/cluster.md"},
		{name: "no link to the English page", zh: edit{"../guides/sample.md", "cluster.md"}, want: "lacks a link to docs/guides/sample.md"},
	} {
		t.Run(c.name, func(t *testing.T) {
			en, zh := strings.Replace(english, c.en.old, c.en.new, 1), strings.Replace(chinese, c.zh.old, c.zh.new, 1)
			said := strings.Join(translation(zh).problems(file, sections(en)), "\n")
			if c.want == "" && said != "" || !strings.Contains(said, c.want) {
				t.Errorf("it said\n%s\nwant %q", said, c.want)
			}
		})
	}
	p := translation(strings.Replace(chinese, "# go", "# 运行", 1))
	p.takeBlocks(sections(english))
	if p.text() != chinese {
		t.Errorf("the page became\n%s", p.text())
	}
}
