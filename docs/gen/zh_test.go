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

var translated = flag.Bool("translated", false, "record that the pages in Chinese are up to date with the English ones")

// TestZh compares the Chinese pages, which people translate, with the English ones, section by section. A page
// begins with a comment that lists its sections. For each section it contains the English heading, and a digest of
// the English text that was translated.
//
//	<!-- docs/guides/cluster.md
//	f4a1c09d3b7e Clusters
//	0b6a3d5f8812 The inventory
//	-->
//
// If the English text of a section has changed since, the section is outdated. This is logged and is not a failure.
// A section that is up to date must match the English one.
//
// With -update, code blocks are copied from the English page.
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

// chinese returns the path of the Chinese page.
func chinese(english string) string { return path.Join("docs/zh", path.Base(english)) }

func checkTranslation(t *testing.T, file string) {
	full := filepath.Join(root, chinese(file))
	if _, err := os.Stat(full); os.IsNotExist(err) {
		t.Fatalf("%s has no page in Chinese, %s", file, chinese(file))
	}
	en, text := sections(read(t, file)), read(t, chinese(file))
	zh := translation(text)
	if *update {
		zh.copyBlocks(en)
	}
	if *translated {
		zh.origin = origin(file, en)
	}
	behind, problems := zh.compare(file, en)
	if len(behind) > 0 {
		t.Logf("%s is behind %s in %d of %d sections: %s\ntranslate them (git log -p %s), then run: go test ./docs/gen -run Zh/%s -translated",
			chinese(file), file, len(behind), len(en), strings.Join(behind, ", "), file, path.Base(file))
	}
	for _, p := range problems {
		t.Errorf("%s: %s", chinese(file), p)
	}
	if now := zh.text(); now != text && (*update || *translated) {
		if err := os.WriteFile(full, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// zhPage is a Chinese page: the comment at its beginning, and the rest.
type zhPage struct {
	origin   string
	sections []section
}

var comment = regexp.MustCompile(`(?s)\A<!--.*?-->\n\n?`)

func translation(text string) zhPage {
	c := comment.FindString(text)
	return zhPage{c, sections(text[len(c):])}
}

// origin returns the comment of a page that was translated from these sections.
func origin(file string, english []section) string {
	text := "<!-- " + file + "\n"
	for _, s := range english {
		text += s.line() + "\n"
	}
	return text + "-->\n\n"
}

// line returns the line of a section in the comment.
func (s section) line() string { return s.digest() + " " + s.heading }

// english returns, for each section of the page, the English section that it was translated from. It is nil if that
// section has changed or was removed.
func (p zhPage) english(en []section) []*section {
	lines := strings.Split(strings.TrimSpace(p.origin), "\n")
	all := make([]*section, max(0, len(lines)-2)) // without the first and the last line of the comment
	for i := range all {
		if at := slices.IndexFunc(en, func(s section) bool { return s.line() == lines[i+1] }); at >= 0 {
			all[i] = &en[at]
		}
	}
	return all
}

// copyBlocks replaces the code blocks by those of the English page, in sections that are up to date and have the
// same number of blocks.
func (p zhPage) copyBlocks(en []section) {
	for i, e := range p.english(en) {
		if i < len(p.sections) && e != nil && len(p.sections[i].blocks) == len(e.blocks) {
			p.sections[i].blocks = e.blocks
		}
	}
}

// text returns the text that the page was parsed from.
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

// compare returns the English sections for which the page is outdated, and the problems of the page that do not
// depend on changes of the English one.
func (p zhPage) compare(file string, en []section) (behind, problems []string) {
	if !strings.HasPrefix(p.origin, "<!-- "+file+"\n") {
		return nil, []string{"the page does not begin with the comment <!-- " + file}
	}
	from := p.english(en)
	if len(from) != len(p.sections) {
		return nil, []string{fmt.Sprintf("%d sections, and the comment on top lists %d", len(p.sections), len(from))}
	}
	current := map[*section]bool{}
	for i, s := range p.sections {
		e := from[i]
		if e == nil {
			continue
		}
		current[e] = slices.Equal(e.blocks, s.blocks)
		for _, d := range differences(file, *e, s) {
			problems = append(problems, fmt.Sprintf("%q (%q): %s", s.heading, e.heading, d))
		}
	}
	for i := range en {
		if !current[&en[i]] {
			behind = append(behind, en[i].heading)
		}
	}
	return behind, problems
}

var items = regexp.MustCompile(`(?m)^\s*(\||- |\d+\. )`)

// differences compares a section with the English one that it was translated from: the level, the inline code, the
// links, and the number of rows and items.
func differences(file string, en, zh section) []string {
	all := slices.Concat(unlike("code", en.code(), zh.code()),
		unlike("a link to", expectedLinks(file, en), linkedFiles(chinese(file), zh)))
	if en.level != zh.level {
		all = append(all, fmt.Sprintf("a heading of level %d, in English %d", zh.level, en.level))
	}
	if e, z := len(items.FindAllString(en.prose, -1)), len(items.FindAllString(zh.prose, -1)); e != z {
		all = append(all, fmt.Sprintf("%d rows of tables and items of lists, in English %d", z, e))
	}
	return all
}

// unlike lists the names that are in only one of the sections.
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

// expectedLinks returns the files that a translated section links to: Chinese pages where they exist. Below its
// title, a Chinese page links to the English one. Of the English pages, only README.md links back.
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

// TestZhFindsWhatDiffers edits a page or its translation, and expects the page to be outdated or broken.
func TestZhFindsWhatDiffers(t *testing.T) {
	const file = "docs/guides/sample.md"
	const english = "# Sample\n\nSee [more](cluster.md#a).\n\n## Run it\n\n- With `--yes`.\n\n```sh\nkk run # go\n```\n"
	const body = "# 示例\n\n[English](../guides/sample.md)\n\n参见[更多](cluster.md#a)。\n\n## 运行\n\n- 使用 `--yes`。\n\n```sh\nkk run # go\n```\n"
	chinese := origin(file, sections(english)) + body
	type edit struct{ old, new string }
	for _, c := range []struct {
		name            string
		en, zh          edit
		behind, problem string
	}{
		{name: "unchanged"},
		{name: "the English text changed", en: edit{"With", "Without"}, behind: "Run it"},
		{name: "an English item is new", en: edit{"- With", "- `--check`\n- With"}, behind: "Run it"},
		{name: "an English section is new", en: edit{"## Run it", "## First\n\nx\n\n## Run it"}, behind: "First"},
		{name: "an English section was removed", en: edit{"# Sample\n\nSee [more](cluster.md#a).\n\n", ""}},
		{name: "only a command changed", en: edit{"kk run # go", "kk run -v"}, behind: "Run it"},
		{name: "a comment in a block was translated", zh: edit{"# go", "# 运行"}, behind: "Run it"},
		{name: "a heading of another level", zh: edit{"## 运行", "### 运行"}, problem: "a heading of level 3, in English 2"},
		{name: "a section is missing", zh: edit{"## 运行\n", ""}, problem: "1 sections, and the comment on top lists 2"},
		{name: "the comment is missing", zh: edit{"<!-- docs/guides/sample.md", "<!-- x"},
			problem: "does not begin with the comment"},
		{name: "an item is missing", zh: edit{"- 使用", "使用"}, problem: "0 rows of tables and items of lists, in English 1"},
		{name: "a flag is missing", zh: edit{"`--yes`", "它"}, problem: "lacks code --yes"},
		{name: "a flag is another", zh: edit{"`--yes`", "`--no`"}, problem: "has code --no"},
		{name: "a link to an English guide", zh: edit{"(cluster.md", "(../guides/cluster.md"},
			problem: "lacks a link to docs/zh/cluster.md"},
		{name: "no link to the English page", zh: edit{"../guides/sample.md", "cluster.md"},
			problem: "lacks a link to docs/guides/sample.md"},
	} {
		t.Run(c.name, func(t *testing.T) {
			en, zh := strings.Replace(english, c.en.old, c.en.new, 1), strings.Replace(chinese, c.zh.old, c.zh.new, 1)
			behind, problems := translation(zh).compare(file, sections(en))
			if got := strings.Join(behind, ", "); got != c.behind {
				t.Errorf("behind in %q, want %q", got, c.behind)
			}
			got := strings.Join(problems, "\n")
			if c.problem == "" && got != "" || !strings.Contains(got, c.problem) {
				t.Errorf("problems:\n%s\nwant %q", got, c.problem)
			}
		})
	}
	p := translation(strings.Replace(chinese, "# go", "# 运行", 1))
	p.copyBlocks(sections(english))
	if p.text() != chinese {
		t.Errorf("the page became\n%s", p.text())
	}
}
