// Package library runs the modules that a project bundles: programs in a
// folder library/ next to the playbook or in a role, in any language.
//
// A program is copied to the host and run there. It gets its arguments as JSON
// on standard input and in the file that its one argument names, and prints its
// result as JSON: what Ansible calls binary modules and WANT_JSON modules. An
// executable text without the word WANT_JSON gets key=value words in the file
// instead, as Ansible's old-style modules do; the text
// <<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>> in it is replaced by the JSON.
// Source: "Developing modules, program flow and debugging" of Ansible's
// developer guide.
package library

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Folder is what the folders of such modules are called.
const Folder = "library"

// notPrograms are the extensions of other files next to programs.
var notPrograms = []string{".yaml", ".yml", ".json", ".ini", ".md", ".rst", ".txt", ".pyc", ".pyo", ".bak", ".orig",
	".swp", ".rpm"}

// Programs lists the programs of a folder by the names of their modules: NAME,
// or NAME with one ending. A folder that does not exist has none.
func Programs(tree source.Tree, dir string) map[string]string {
	entries, err := tree.ReadDir(dir)
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for _, e := range entries {
		name, ext := e.Name(), path.Ext(e.Name())
		if e.IsDir() || slices.Contains(notPrograms, ext) || strings.HasSuffix(name, "~") || strings.HasPrefix(name, ".") {
			continue
		}
		out[strings.TrimSuffix(name, ext)] = source.Join(dir, name)
	}
	return out
}

// style is how a program reads its arguments.
type style int

const (
	jsonFile style = iota // JSON in the file that it is given
	words                 // key=value words in that file
	embedded              // JSON in its own text, in the place of argsMark
)

const argsMark = "<<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>>"

// Spec describes the module NAME that a program is. A program that kk cannot
// run is an error, which completes a sentence that begins with its name.
func Spec(tree source.Tree, file, name string) (*module.Spec, error) {
	text, err := tree.ReadFile(file)
	if err != nil {
		return nil, err
	}
	how, err := styleOf(text)
	if err != nil {
		return nil, err
	}
	about, err := describe(tree, file, name)
	if err != nil {
		return nil, err
	}
	s := &module.Spec{
		Name: name, Summary: about.summary, AnyArgs: true, Check: module.Skips,
		CheckSkipMsg: fmt.Sprintf("remote module (%s) does not support check mode", name),
		New:          func() module.Runner { return &own{name: name, file: file, how: how, Args: value.NewDict()} },
	}
	if about.checkMode {
		s.Check = module.Predicts
	}
	return s, nil
}

// styleOf detects how a program reads its arguments.
func styleOf(text []byte) (style, error) {
	if isBinary(text) {
		return jsonFile, nil
	}
	switch {
	case !bytes.HasPrefix(text, []byte("#!")):
		return 0, fmt.Errorf("is text without a first line that names its interpreter (#!/bin/sh)")
	case bytes.Contains(text, []byte("ansible.module_utils")) || bytes.Contains(text, []byte("from ansible import")):
		return 0, fmt.Errorf("needs Ansible's Python library, which hosts of kk do not get: " +
			"a custom module must be a standalone program that reads JSON and prints JSON")
	case bytes.Contains(text, []byte(argsMark)):
		return embedded, nil
	case bytes.Contains(text, []byte("WANT_JSON")):
		return jsonFile, nil
	}
	return words, nil
}

// isBinary is what text is not: it has a NUL near its beginning.
func isBinary(text []byte) bool {
	return bytes.IndexByte(text[:min(len(text), 8192)], 0) >= 0
}
