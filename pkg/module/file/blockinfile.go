package file

import (
	"context"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/pyregex"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// BlockInFile is the module blockinfile.
type BlockInFile struct {
	Attributes
	Path           string `kk:"path,required,path,alias=dest|destfile|name" doc:"file on the host"`
	Block          string `kk:"block,alias=content" doc:"the lines between the markers; an empty block is removed"`
	Marker         string `kk:"marker" default:"# {mark} ANSIBLE MANAGED BLOCK" doc:"line before and after the block; {mark} is replaced with marker_begin and marker_end"`
	MarkerBegin    string `kk:"marker_begin" default:"BEGIN" doc:"value of {mark} before the block"`
	MarkerEnd      string `kk:"marker_end" default:"END" doc:"value of {mark} after the block"`
	State          string `kk:"state" default:"present" choices:"absent,present" doc:"whether the block should exist"`
	InsertAfter    string `kk:"insertafter" doc:"position of a new block: EOF, or after the last line that matches this regular expression. Default: EOF"`
	InsertBefore   string `kk:"insertbefore" doc:"position of a new block: BOF, or before the last line that matches this regular expression"`
	Create         bool   `kk:"create" default:"no" doc:"create the file if it does not exist"`
	Backup         bool   `kk:"backup" default:"no" doc:"keep a backup of the previous file next to it"`
	Validate       string `kk:"validate" doc:"command that must accept the new file before it is put in place; %s is its path"`
	AppendNewline  bool   `kk:"append_newline" default:"no" doc:"leave an empty line after the block, unless it ends the file"`
	PrependNewline bool   `kk:"prepend_newline" default:"no" doc:"leave an empty line before the block, unless it begins the file"`
}

func blockInFileSpec() module.Spec {
	return module.Spec{
		Name:    "blockinfile",
		Summary: "Manages a block of lines between marker lines in a file.",
		Notes: []string{"The file is read once and written only if it was not changed in the meantime; links are " +
			"followed."},
		Examples: []string{
			"- name: Add the names of the cluster\n  blockinfile:\n    path: /etc/hosts\n    marker: \"# {mark} cluster\"\n" +
				"    block: |\n      10.0.0.11 node1\n      10.0.0.12 node2",
		},
		Returns: []module.Return{
			{Key: "msg", Type: "str", Doc: "Block inserted, Block updated, Block removed, File created, or empty"},
			{Key: "backup_file", Type: "str", Doc: "path of the backup, with backup"},
			{Key: "rc", Type: "int", Doc: "of a failure: 257 if the file is missing, and 256 if it is a folder"},
		},
		New: func() module.Runner { return new(BlockInFile) },
	}
}

// Rules implements schema.Ruled.
func (*BlockInFile) Rules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("insertbefore", "insertafter"),
		ValidateRule(),
	}
}

// Run implements module.Runner.
func (m *BlockInFile) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	after, err := optionalPattern(place(m.InsertAfter, "EOF"))
	if err != nil {
		return module.Result{}, err
	}
	before, err := optionalPattern(place(m.InsertBefore, "BOF"))
	if err != nil {
		return module.Result{}, err
	}
	e, err := OpenEdit(ctx, c, m.Path, &m.Attributes, m.Create || m.State == "absent")
	if err != nil {
		return NotEdited(asPath(err))
	}
	data := value.NewDict()
	if !e.Exists && (m.State == "absent" || m.Block == "") && !m.Create {
		return module.Result{Msg: "File " + e.at.path + " not present", Data: data}, nil
	}
	text, msg, err := m.apply(e.Text, after, before)
	if err != nil {
		return module.Result{}, err
	}
	if !e.Exists && m.State == "present" {
		msg = "File created"
	}
	return e.Save(ctx, c, &m.Attributes, Edited{
		Text: text, Msg: msg, Touched: m.State == "present", Backup: m.Backup, Validate: m.Validate, Data: data,
	})
}

func optionalPattern(s string) (*pyregex.Regexp, error) {
	if s == "" {
		return nil, nil
	}
	return compilePattern(s, pyregex.ASCII)
}

// block returns the desired lines including the markers. It returns no lines if the block is to be removed.
func (m *BlockInFile) block() (first, last string, lines []string) {
	first = strings.ReplaceAll(m.Marker, "{mark}", m.MarkerBegin)
	last = strings.ReplaceAll(m.Marker, "{mark}", m.MarkerEnd)
	if m.State == "present" && m.Block != "" {
		lines = append(lines, Ended(first))
		lines = append(lines, SplitLines(Ended(m.Block))...)
		lines = append(lines, Ended(last))
	}
	return first, last, lines
}

// apply returns the text with the desired block.
func (m *BlockInFile) apply(text string, after, before *pyregex.Regexp) (string, string, error) {
	first, last, block := m.block()
	lines := SplitLines(text)
	from, to := -1, -1
	for i, line := range lines {
		switch strings.TrimRight(line, "\r\n") {
		case first:
			from = i
		case last:
			to = i
		}
	}
	old := ""
	at := 0
	var err error
	switch {
	case from >= 0 && to >= 0 && from <= to:
		old = strings.Join(lines[from:to+1], "")
		lines = append(lines[:from:from], lines[to+1:]...)
		at = from
	case from >= 0 && to >= 0: // a marker without its counterpart: the lines in between are not the block
		old = strings.Join(lines[to:from+1], "")
		lines = append(lines[:to:to], lines[from+1:]...)
		at = to
	default:
		if at, err = m.insertion(lines, after, before); err != nil {
			return "", "", err
		}
	}
	if at > 0 && at <= len(lines) && len(block) > 0 {
		lines[at-1] = Ended(lines[at-1])
	}
	out := append(append(append([]string{}, lines[:at]...), m.spaced(block, lines, at)...), lines[at:]...)
	return strings.Join(out, ""), m.message(old, strings.Join(block, "")), nil
}

// spaced returns the block with the requested empty lines around it.
func (m *BlockInFile) spaced(block, lines []string, at int) []string {
	if len(block) == 0 {
		return nil
	}
	if m.PrependNewline && at > 0 && strings.TrimRight(lines[at-1], "\r\n") != "" {
		block = append([]string{"\n"}, block...)
	}
	if m.AppendNewline && at < len(lines) && strings.TrimRight(lines[at], "\r\n") != "" {
		block = append(block, "\n")
	}
	return block
}

func (m *BlockInFile) message(old, block string) string {
	switch {
	case old == block:
		return ""
	case old == "":
		return "Block inserted"
	case block == "":
		return "Block removed"
	}
	return "Block inserted"
}

// insertion returns the position of a new block as an index of lines.
func (m *BlockInFile) insertion(lines []string, after, before *pyregex.Regexp) (int, error) {
	if m.InsertBefore == "BOF" {
		return 0, nil
	}
	p, step := after, 1
	if before != nil {
		p, step = before, 0
	}
	at := len(lines)
	if p == nil {
		return at, nil
	}
	for i, line := range lines {
		found, err := p.Find(Chomp(line))
		if err != nil {
			return 0, err
		}
		if found != nil {
			at = i + step
		}
	}
	return at, nil
}
