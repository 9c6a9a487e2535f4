package project

import (
	"strings"
	"testing"
)

// TestRulesOfArguments checks what is reported about arguments before a run: only errors that occur in every run.
func TestRulesOfArguments(t *testing.T) {
	const exclusive, oneOf = "copy: parameters are mutually exclusive: src|content", "src (or content) is required"
	for _, c := range []struct{ name, task, want string }{
		{"literals", "copy: {dest: /x, src: a, content: b}", exclusive},
		{"words", "copy: dest=/x src=a content=b", exclusive},
		{"a template is given", "copy: {dest: /x, src: '{{ a }}', content: b}", exclusive},
		{"templates inside", "copy: {dest: /x, src: a, content: {k: '{{ a }}'}}", exclusive},
		{"both are templates", "copy: {dest: /x, src: '{{ a }}', content: '{{ b }}'}", exclusive},
		{"omit", "copy: {dest: /x, src: '{{ a | default(omit) }}', content: b}", ""},
		{"an empty default", "copy: {dest: /x, src: \"{{ a | default('') }}\", content: b}", ""},
		{"a block", "copy: {dest: /x, src: '{% if a %}a{% endif %}', content: b}", ""},
		{"null", "copy: {dest: /x, src: , content: b}", ""},
		{"empty is not given", "copy: {dest: /x, src: '', content: b}", ""},
		{"none", "copy: {dest: /x}", oneOf},
		{"one that may be omitted", "copy: {dest: /x, src: '{{ omit }}'}", ""},
		{"args as a template", "{copy: , args: '{{ a }}'}", ""},
		{"args as a mapping", "{copy: {dest: /x, src: a}, args: {content: b}}", exclusive},
		{"all arguments as a template", "copy: '{{ a }}'", ""},
		{"defaults may give it", "{copy: {dest: /x}, module_defaults: {copy: {src: a}}}", ""},
		{"defaults of another module", "{copy: {dest: /x}, module_defaults: {file: {src: a}}}", oneOf},
		{"defaults as a template", "{copy: {dest: /x}, module_defaults: '{{ a }}'}", ""},
		{"defaults and a conflict", "{copy: {dest: /x, src: a, content: b}, module_defaults: {copy: {force: no}}}",
			exclusive},
		{"a loop", "{copy: {dest: /x, src: '{{ item }}', content: b}, loop: [1]}", exclusive},
		{"a misspelt argument", "copy: {dest: /x, scr: a}", "module \"copy\" has no argument \"scr\""},
		{"a value decides", "file: {path: /x, state: hard}", "src is required for creating new hardlinks"},
		{"a value that the run has", "file: {path: /x, state: '{{ a }}'}", ""},
		{"a default decides", "cron: {name: x}", "state is present but all of the following are missing: job"},
		{"defaults may decide", "{cron: {name: x}, module_defaults: {cron: {state: absent}}}", ""},
		{"an alias", "lineinfile: {path: /x, line: a, regex: b, search_string: c}",
			"parameters are mutually exclusive: regexp|search_string"},
		{"a bool that is off", "git: {repo: x, dest: /x, separate_git_dir: /y, bare: no}", ""},
		{"a bool that is on", "git: {repo: x, dest: /x, separate_git_dir: /y, bare: yes}",
			"parameters are mutually exclusive: separate_git_dir|bare"},
		{"a bool that the run has", "git: {repo: x, dest: /x, separate_git_dir: /y, bare: '{{ a }}'}", ""},
		{"a value of a wrong type", "git: {repo: x, dest: /x, depth: many}", "value of depth must be an int"},
		{"a value out of bounds", "git: {repo: x, dest: /x, depth: 0}", "value of depth must be at least 1, got 0"},
		{"a bound that the run has", "git: {repo: x, dest: /x, depth: '{{ a }}'}", ""},
		{"defaults that conflict", "{ping: , module_defaults: {copy: {src: a, content: b}}}", exclusive},
		{"defaults alone are no task", "{ping: , module_defaults: {copy: {mode: '0644'}}}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, ds := link(t, "-- site.yml --\n- hosts: all\n  tasks:\n  - "+c.task+"\n", Selection{})
			var said []string
			for _, d := range ds {
				said = append(said, d.Error())
			}
			all := strings.Join(said, "\n")
			switch {
			case c.want == "" && len(ds) > 0:
				t.Errorf("linking says %s", all)
			case c.want != "" && (len(ds) != 1 || !strings.Contains(all, c.want) || !strings.Contains(all, "site.yml:3:")):
				t.Errorf("linking says %q, not %q", all, c.want)
			}
		})
	}
}
