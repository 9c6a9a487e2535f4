package library

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
)

// about is the documentation of a program, in the file NAME.yml next to it.
type about struct {
	summary   string
	checkMode bool // it may be called in check mode, and then changes nothing
}

// describe reads NAME.yml or NAME.yaml next to the program: documentation as
// Ansible has it for modules that are not Python. Without one, nothing is known.
func describe(tree source.Tree, program, name string) (about, error) {
	dir := program[:strings.LastIndexByte(program, '/')+1]
	for _, ext := range []string{".yml", ".yaml"} {
		file := dir + name + ext
		if !tree.IsFile(file) {
			continue
		}
		text, err := tree.ReadFile(file)
		if err != nil {
			return about{}, err
		}
		var doc struct {
			Documentation struct {
				Summary    string `yaml:"short_description"`
				Attributes struct {
					CheckMode struct {
						Support string `yaml:"support"`
					} `yaml:"check_mode"`
				} `yaml:"attributes"`
			} `yaml:"DOCUMENTATION"`
		}
		if err := yaml.Unmarshal(text, &doc); err != nil {
			return about{}, fmt.Errorf("documentation of module %s: %s: %w", name, file, err)
		}
		d := doc.Documentation
		return about{d.Summary, d.Attributes.CheckMode.Support == "full"}, nil
	}
	return about{}, nil
}
