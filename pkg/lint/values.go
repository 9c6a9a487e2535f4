package lint

import (
	"encoding/json"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	"mvdan.cc/sh/v3/syntax"

	"kubekey/pkg/playbook"
	"kubekey/pkg/project"
	"kubekey/pkg/redact"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
)

func valueRules() []Rule {
	return []Rule{
		{
			ID: "condition-on-text", Summary: "a condition that is a text",
			Why: "A condition is already an expression. A quoted string is always true, `\"{{ x }}\"` is evaluated twice, " +
				"and a " +
				"variable that holds the text `false` is true: use `x | bool`.",
			Bad:   "- ping:\n  when: \"'no'\"\n",
			Good:  "- ping:\n  when: inventory_hostname in groups['all']\n",
			check: (*pass).conditions,
		},
		{
			ID: "clear-secret", Summary: "a password or a key in clear text",
			Why: "Everybody who can read the project or its history can read the secret. Encrypt it with `kk vault " +
				"encrypt-string`, " +
				"or read it from a file or the environment with a lookup. Values without a template whose name looks like a " +
				"secret are reported.",
			Bad:   "- debug: {msg: hello}\n  vars: {db_password: hunter2!}\n",
			Good:  "- debug: {msg: hello}\n  vars: {db_password: \"{{ lookup('env', 'DB_PASSWORD') }}\"}\n",
			check: (*pass).secrets,
		},
		{
			ID: "invalid-rendering", Summary: "a template that renders to what its ending does not promise",
			Why: "A `.json`, `.yaml` or `.sh` file that does not parse breaks its reader, on all hosts at once. Templates " +
				"are rendered with the " +
				"variables of the first host of the inventory; one that needs what only a run knows (facts, results) is passed " +
				"over.",
			Bad: "- template: {src: app.json.j2, dest: /srv/app.json, mode: \"0644\"}\n-- templates/app.json.j2 " +
				"--\n{\"hosts\": [{% for h in [1, 2] %}{{ h }},{% endfor %}]}\n",
			Good: "- template: {src: app.json.j2, dest: /srv/app.json, mode: \"0644\"}\n-- templates/app.json.j2 " +
				"--\n{\"hosts\": {{ [1, 2] | to_json }}}\n",
			check: (*pass).renderings,
		},
	}
}

// conditions reports what linking does not report already.
func (p *pass) conditions() {
	for _, t := range p.tasks {
		s := t.Syntax
		for _, v := range slices.Concat(s.When, s.Until, s.ChangedWhen, s.FailedWhen) {
			p.condition(t, v)
		}
	}
}

func (p *pass) condition(t *project.Task, v playbook.Value) {
	text := strings.TrimSpace(v.Text())
	if v.Kind() != yaml.ScalarNode || v.Scalar().ShortTag() != "!!str" {
		return
	}
	if isQuoted(text) {
		p.report(t, v.TextAt(), len(text), "compare it with something", "the condition is a text, which is always true")
		return
	}
	if !playbook.IsIdentifier(text) {
		return
	}
	for _, l := range slices.Concat(t.Static.High, t.Static.Mid, t.Static.Play, t.Static.Low) {
		raw, ok := l.Raw(text)
		if !ok {
			continue
		}
		if word, isText := raw.(string); isText && slices.Contains([]string{"false", "no", "off"}, strings.ToLower(word)) {
			p.report(t, v.TextAt(), len(text), "write "+text+" | bool", "'%s' is the text %q, which is true as a condition",
				text, word)
		}
		return
	}
}

// isQuoted reports whether an expression is one string literal.
func isQuoted(text string) bool {
	if len(text) < 2 || text[0] != '\'' && text[0] != '"' {
		return false
	}
	return strings.IndexByte(text[1:], text[0]) == len(text)-2 && len(text) > 2
}

func (p *pass) secrets() {
	files := map[string]bool{}
	for _, t := range p.tasks {
		p.secretVars(t, t.Syntax.Vars)
		if t.Spec != nil {
			p.secretArgs(t)
		}
		for r := t.Role; r != nil; r = r.Parent {
			p.secretFolder(source.Join(r.Path, "defaults"), files)
			p.secretFolder(source.Join(r.Path, "vars"), files)
		}
	}
	for _, play := range p.Plays {
		if play.Syntax != nil {
			p.secretVars(nil, play.Syntax.Vars)
		}
		for _, kind := range []string{"vars", "group_vars", "host_vars"} {
			p.secretFolder(source.Join(play.Dir, kind), files)
		}
	}
}

func (p *pass) secretVars(t *project.Task, vars *playbook.Vars) {
	if vars.Len() == 0 {
		return
	}
	for _, name := range vars.Names {
		p.secret(t, name, vars.Values[name].File, vars.Values[name].Node)
	}
}

func (p *pass) secretArgs(t *project.Task) {
	args := t.Syntax.Args
	if args.Kind() != yaml.MappingNode {
		return
	}
	content := args.Scalar().Content
	for i := 0; i+1 < len(content); i += 2 {
		if value := content[i+1]; value.Kind == yaml.ScalarNode {
			p.secret(t, content[i].Value, args.File, value)
		}
	}
}

func (p *pass) secretFolder(dir string, seen map[string]bool) {
	if seen[dir] {
		return
	}
	seen[dir] = true
	entries, err := p.Tree.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := source.Join(dir, e.Name())
		if e.IsDir() {
			p.secretFolder(name, seen)
			continue
		}
		text, err := p.Tree.ReadFile(name)
		if err != nil {
			continue
		}
		f := source.NewFile(source.Shown(name), text)
		docs, _ := source.ParseYAML(f)
		for _, doc := range docs {
			for doc.Kind == yaml.DocumentNode {
				doc = doc.Content[0]
			}
			p.secretTree(f, doc)
		}
	}
}

func (p *pass) secretTree(f *source.File, n *yaml.Node) {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		p.secret(nil, n.Content[i].Value, f, n.Content[i+1])
	}
}

// secret reports a value that is a secret by its name, and what is inside it.
func (p *pass) secret(t *project.Task, name string, f *source.File, n *yaml.Node) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		p.secretTree(f, n)
	case yaml.ScalarNode:
		if n.Tag == "!vault" || n.ShortTag() != "!!str" || strings.Contains(n.Value, "{{") ||
			!redact.IsSecret(name, n.Value) {
			return
		}
		p.report(t, source.NodePos(f, n), 0, "encrypt it: kk vault encrypt-string", "'%s' is in clear text", name)
	}
}

func (p *pass) renderings() {
	if p.Render == nil {
		return
	}
	for _, t := range p.tasks {
		if t.Action != "template" || t.Args == nil {
			continue
		}
		src, dest := literal(t, "src"), literal(t, "dest")
		if src == "" {
			continue
		}
		ending := path.Ext(strings.TrimSuffix(dest, "/"))
		if ending == "" {
			ending = path.Ext(strings.TrimSuffix(src, ".j2"))
		}
		parse := parsers()[ending]
		file, err := t.Find(p.Tree, "templates", src)
		if parse == nil || err != nil {
			continue
		}
		tmpl, err := p.Templates.File(file, template.FileOptions{})
		if err != nil {
			continue // reported when it was linked
		}
		out, err := p.Render(t, tmpl)
		if err != nil {
			continue
		}
		if err := parse(out); err != nil {
			p.report(t, t.Syntax.ModuleAt, len(t.Syntax.Module), "render it on a host: kk eval --file "+source.Shown(file),
				"%s does not render to valid %s: %s", src, ending[1:], err)
		}
	}
}

// literal is a literal argument of a task, "" when it is none.
func literal(t *project.Task, name string) string {
	arg, ok := t.Args.Member(name)
	if !ok {
		return ""
	}
	v, _ := arg.Static()
	s, _ := v.(string)
	return s
}

// parsers check the syntax of a file by its extension.
func parsers() map[string]func(string) error {
	yamlText := func(text string) error {
		for dec := yaml.NewDecoder(strings.NewReader(text)); ; {
			var v any
			if err := dec.Decode(&v); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
		}
	}
	shell := func(text string) error {
		lang := syntax.LangPOSIX
		if first, _, _ := strings.Cut(text, "\n"); strings.Contains(first, "bash") {
			lang = syntax.LangBash
		}
		_, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(text), "")
		return err
	}
	return map[string]func(string) error{
		".yaml": yamlText, ".yml": yamlText, ".sh": shell,
		".json": func(text string) error { return json.Unmarshal([]byte(text), new(any)) },
	}
}
