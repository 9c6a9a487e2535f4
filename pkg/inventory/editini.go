package inventory

import (
	"fmt"
	"slices"
	"strings"

	"kubekey/pkg/source"
)

// iniEditor edits INI inventories, line by line.
type iniEditor struct{ file *source.File }

func (e *iniEditor) text() *source.File { return e.file }

// iniLine is a line of an INI inventory.
type iniLine struct {
	text  string
	group string // of the section that it is in
	kind  string // of that section: hosts, children or vars
	head  bool   // it begins the section
	names []string
	vars  []word // of a host, as in the line without their quotes
	raw   []string
}

func (e *iniEditor) lines() []iniLine {
	group, kind := Ungrouped, "hosts"
	var out []iniLine
	for text := range strings.Lines(string(e.file.Text)) {
		line := iniLine{text: text}
		word := strings.Trim(text, " \t\n")
		m := sectionHead.FindStringSubmatch(word)
		switch {
		case word == "" || word[0] == '#' || word[0] == ';':
		case m != nil && (kind != "hosts" || sectionLine.MatchString(word)):
			group, kind = m[1], "hosts"
			if m[2] != "" {
				kind = m[2]
			}
			line.head = true
		case kind == "hosts":
			words, err := splitWords(word)
			if err == nil && len(words) > 0 {
				line.names, _, _ = expandHosts(words[0].text)
				line.vars, line.raw = words[1:], rawWords(word, words[1:])
			}
		}
		line.group, line.kind = group, kind
		out = append(out, line)
	}
	return out
}

// rawWords returns words as they are in the line, with their quotes.
func rawWords(line string, words []word) []string {
	runes := []rune(line)
	var out []string
	for i, w := range words {
		end := len(runes)
		if i+1 < len(words) {
			end = words[i+1].at
		}
		raw := strings.TrimRight(string(runes[w.at:end]), " \t")
		if i+1 == len(words) {
			raw = withoutComment(raw)
		}
		out = append(out, raw)
	}
	return out
}

// withoutComment returns the last word of a line without the comment behind it.
func withoutComment(raw string) string {
	for i := range raw {
		if raw[i] != '#' {
			continue
		}
		if _, err := splitWords(raw[:i]); err == nil {
			return strings.TrimRight(raw[:i], " \t")
		}
	}
	return raw
}

func (e *iniEditor) define(a Addition) error {
	lines := e.lines()
	var near []iniLine
	like := -1
	for _, own := range []bool{true, false} {
		for _, member := range lines {
			if len(member.names) != 1 || own != (member.group == a.Group) {
				continue
			}
			if at := definedAt(lines, member.names[0]); len(lines[at].vars) > 0 || like < 0 {
				like = at
				near = append(near, lines[at])
			}
		}
		if len(near) > 0 {
			break
		}
	}
	text := a.Name + iniVars(a, near) + "\n"
	if like < 0 || lines[like].group == a.Group || lines[like].group != Ungrouped && lines[like].group != All {
		return e.insert(lines, a.Group, text)
	}
	if err := e.insertBelow(lines, lastHost(lines, like), text); err != nil {
		return err
	}
	return e.join(a)
}

// definedAt returns the line with the variables of a host, or the first that names it.
func definedAt(lines []iniLine, name string) int {
	first := -1
	for i, l := range lines {
		if !slices.Contains(l.names, name) {
			continue
		}
		if len(l.vars) > 0 {
			return i
		}
		if first < 0 {
			first = i
		}
	}
	return first
}

// iniVars returns the variables of a new host: those that its neighbors share, and its address where they have theirs.
func iniVars(a Addition, near []iniLine) string {
	var b strings.Builder
	placed := false
	add := func(key, raw string) { fmt.Fprintf(&b, " %s=%s", key, raw) }
	if len(near) > 0 {
		like := near[len(near)-1]
		old := wordValue(like, "ansible_host")
		builder := varsBuilder{address: a.Address}
		for i, w := range like.vars {
			key, val, _ := strings.Cut(w.text, "=")
			switch {
			case val == old && old != "":
				if k := builder.familyKey(scalar(key)); k != nil {
					add(k.Value, a.Address)
					placed = placed || key == "ansible_host"
				}
			case strings.HasPrefix(key, "ansible_") && val != "local" && !slices.ContainsFunc(near, func(n iniLine) bool {
				return wordValue(n, key) != val
			}):
				b.WriteString(" " + like.raw[i])
			}
		}
	}
	if !placed && a.Name != a.Address {
		return " ansible_host=" + a.Address + b.String()
	}
	return b.String()
}

func wordValue(l iniLine, key string) string {
	for _, w := range l.vars {
		if k, v, _ := strings.Cut(w.text, "="); k == key {
			return v
		}
	}
	return ""
}

// lastHost returns the last line with a host in the section of a line.
func lastHost(lines []iniLine, at int) int {
	for i := at + 1; i < len(lines) && !lines[i].head; i++ {
		if len(lines[i].names) > 0 {
			at = i
		}
	}
	return at
}

func (e *iniEditor) join(a Addition) error { return e.insert(e.lines(), a.Group, a.Name+"\n") }

// insert adds a line to the section of a group.
func (e *iniEditor) insert(lines []iniLine, group, text string) error {
	at := slices.IndexFunc(lines, func(l iniLine) bool { return l.head && l.group == group && l.kind == "hosts" })
	if at < 0 {
		return fmt.Errorf("the inventory has no section [%s]", group)
	}
	end := lastHost(lines, at)
	for end == at && at+1 < len(lines) && strings.HasPrefix(lines[at+1].text, "#") {
		at, end = at+1, at+1 // below the comment of the section
	}
	return e.insertBelow(lines, end, text)
}

func (e *iniEditor) insertBelow(lines []iniLine, at int, text string) error {
	var b strings.Builder
	for i, l := range lines {
		b.WriteString(l.text)
		if i != at {
			continue
		}
		if !strings.HasSuffix(l.text, "\n") {
			text = "\n" + strings.TrimSuffix(text, "\n")
		}
		b.WriteString(text)
	}
	e.file = source.NewFile(e.file.Name, []byte(b.String()))
	return nil
}

func (e *iniEditor) remove(name string, groups []string) error {
	var kept []string
	for n, l := range e.lines() {
		if !slices.Contains(l.names, name) || groups != nil && !slices.Contains(groups, l.group) {
			kept = append(kept, l.text)
			continue
		}
		if len(l.names) > 1 {
			word, _, _ := strings.Cut(strings.TrimSpace(l.text), " ")
			return source.Errorf(source.Pos{File: e.file, Line: n + 1, Col: 1}, "%s stands for %d hosts", word, len(l.names))
		}
		kept = kept[:e.commentAbove(kept, name, l)]
	}
	e.file = source.NewFile(e.file.Name, []byte(strings.Join(kept, "")))
	return nil
}

func isINIComment(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";")
}

// commentAbove returns where the comment of a host begins at the end of kept. One directly below the head of a section
// or at the begin of the file is about all hosts of the section, up to the first line that names the host.
func (e *iniEditor) commentAbove(kept []string, name string, of iniLine) int {
	i := len(kept)
	for i > 0 && isINIComment(kept[i-1]) {
		i--
	}
	begins := i == 0 || strings.HasPrefix(strings.TrimLeft(kept[i-1], " \t"), "[")
	others := slices.ContainsFunc(e.lines(), func(l iniLine) bool {
		return l.group == of.group && len(l.names) > 0 && !slices.Contains(l.names, name)
	})
	if begins && others {
		i += ofAll(kept[i:], name)
	}
	return i
}
