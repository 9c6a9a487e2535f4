package lint

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/expr"
	"kubekey/pkg/playbook"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
)

func nameRules() []Rule {
	return []Rule{
		{
			ID: "undefined-name", Summary: "a variable that nothing defines",
			Why: "The task fails when the run reaches it, which may be late. Known names come from plays, roles, tasks, " +
				"variable files, the inventory and the command line; " +
				"facts (`ansible_...`) always are. A name that an expression has a default for, or asks whether it is defined, " +
				"may be missing. " +
				"Without `-i` only names similar to a known one are reported, since the inventory may define others.",
			Bad:   "- debug: {msg: \"{{ release_chanel }}\"}\n  vars: {release_channel: stable}\n",
			Good:  "- debug: {msg: \"{{ release_channel }}\"}\n  vars: {release_channel: stable}\n",
			check: (*pass).undefinedNames,
		},
		{
			ID: "unused-register", Summary: "a result that nothing reads",
			Why: "A registered result is kept for every host until the run ends. Often its name is misspelled where it is " +
				"used. Names that begin with `_` are ignored.",
			Bad:   "- command: hostname\n  changed_when: false\n  register: result\n",
			Good:  "- command: hostname\n  changed_when: false\n  register: result\n- debug: {msg: \"{{ result.stdout }}\"}\n",
			check: (*pass).unusedRegisters,
		},
		{
			ID: "unused-handler", Summary: "a handler that nothing notifies",
			Why: "It never runs: a service is not restarted when its configuration changes. Not checked where a notified " +
				"name is a template, nor in a role where the name of an included file is one.",
			Bad: "- hosts: all\n  tasks:\n    - ping:\n  handlers:\n    - name: Restart it\n      service: {name: sshd, " +
				"state: restarted}\n",
			Good: "- hosts: all\n  tasks:\n    - ping:\n      notify: Restart it\n  handlers:\n    - name: Restart it\n     " +
				" service: {name: sshd, state: restarted}\n",
			check: (*pass).unusedHandlers,
		},
	}
}

// always are names that exist although nobody defines them: magic variables,
// names of templates, and variables of the playbooks that kk ships.
func always() []string {
	out := []string{"caller", "varargs", "kwargs", "loop", "self", "super", "work_dir", "catalog"}
	for _, m := range playbook.MagicVariables() {
		out = append(out, m.Names()...)
	}
	return out
}

func (p *pass) undefinedNames() {
	known := p.defined()
	names := slices.Sorted(maps.Keys(known))
	for word := range p.elsewhere() {
		known[word] = true
	}
	var reads []expr.Read
	for _, x := range p.Watch.exprs {
		for _, r := range x.Reads() {
			if r.Optional {
				known[r.Name] = true // a required variable is set by the caller
			}
			reads = append(reads, r)
		}
	}
	for _, r := range reads {
		if known[r.Name] || strings.HasPrefix(r.Name, "ansible_") {
			continue
		}
		help := source.DidYouMean(r.Name, names)
		if help == "" {
			if !p.Complete {
				continue
			}
			help = "define it, or give it a default: " + r.Name + " | default(...)"
		}
		p.report(nil, r.Pos, len(r.Name), help, "nothing defines '%s'", r.Name)
	}
}

// defined are all names that something in the project defines.
func (p *pass) defined() map[string]bool {
	out := map[string]bool{}
	add := func(names ...string) {
		for _, n := range names {
			out[n] = true
		}
	}
	add(always()...)
	add(p.Known...)
	for n := range p.Watch.bound {
		add(n)
	}
	dirs := map[string]bool{}
	for _, play := range p.Plays {
		dirs[play.Dir] = true
		for _, l := range play.Static.Play {
			add(l.Names()...)
		}
		for _, q := range play.Prompts {
			add(q.Syntax.Name)
		}
		for _, candidates := range play.VarsFiles {
			for _, c := range candidates {
				if name, ok := c.Raw().(string); ok {
					p.fileNames(source.Join(play.Dir, name), add)
				}
			}
		}
	}
	for _, t := range p.Watch.tasks {
		add(t.Register)
		for _, l := range slices.Concat(t.Static.Low, t.Static.Play, t.Static.Mid, t.Static.High) {
			add(l.Names()...)
		}
		if t.Loop != nil {
			add(t.Loop.Syntax.Var.Text(), t.Loop.Syntax.IndexVar.Text())
		}
		if t.Play != nil {
			dirs[t.Play.Dir] = true
		}
		for r := t.Role; r != nil; r = r.Parent {
			dirs[r.Path] = true
		}
		if t.Syntax.Vars != nil {
			add(t.Syntax.Vars.Names...)
		}
		switch t.Action {
		case "set_fact", "add_host", "set_stats", "add_hostvars", "include_vars":
			add(argumentNames(t)...)
		}
	}
	for dir := range dirs {
		for _, kind := range []string{"vars", "defaults", "group_vars", "host_vars"} {
			p.folderNames(source.Join(dir, kind), add)
		}
	}
	return out
}

// argumentNames are the keys of a task's arguments, and the values of those
// that name a variable themselves.
func argumentNames(t *project.Task) []string {
	var out []string
	args := t.Syntax.Args
	if args.Kind() == yaml.ScalarNode {
		words, _ := playbook.SplitWords(args.Text())
		for _, w := range words {
			out = append(out, w.Key)
		}
		return out
	}
	collect := func(v playbook.Value) {
		if v.Kind() != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(v.Scalar().Content); i += 2 {
			out = append(out, v.Scalar().Content[i].Value)
		}
	}
	collect(args)
	for _, key := range []string{"vars", "data"} {
		collect(args.Get(key))
	}
	return append(out, args.Get("name").Text())
}

func (p *pass) folderNames(dir string, add func(...string)) {
	entries, err := p.Tree.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := source.Join(dir, e.Name())
		if e.Type() == fs.ModeDir {
			p.folderNames(path, add)
			continue
		}
		p.fileNames(path, add)
	}
}

// fileNames adds the top keys of a file of variables. A file that cannot be
// read is reported where it is used.
func (p *pass) fileNames(path string, add func(...string)) {
	text, err := p.Tree.ReadFile(path)
	if err != nil {
		return
	}
	docs, _ := source.ParseYAML(source.NewFile(path, text))
	for _, doc := range docs {
		for doc.Kind == yaml.DocumentNode {
			doc = doc.Content[0]
		}
		if doc.Kind != yaml.MappingNode {
			continue
		}
		for i := 0; i < len(doc.Content); i += 2 {
			add(doc.Content[i].Value)
		}
	}
}

// elsewhere returns the words of files that were not linked, since only a run knows whether they are included. Names
// that they may define or use are not reported.
func (p *pass) elsewhere() map[string]bool {
	linked := map[string]bool{}
	for _, x := range p.Watch.exprs {
		linked[fileOf(x.Pos())] = true
	}
	roles := map[string]bool{}
	for _, t := range p.Watch.tasks {
		linked[fileOf(t.At)] = true
		if t.Play != nil {
			roles[source.Join(t.Play.Dir, "roles")] = true
			roles[source.Join(t.Play.Dir, "tasks")] = true
		}
		for r := t.Role; r != nil; r = r.Parent {
			roles[source.Dir(r.Path)] = true
		}
	}
	out := map[string]bool{}
	for dir := range roles {
		p.unlinked(dir, linked, out)
	}
	return out
}

func (p *pass) unlinked(dir string, linked, out map[string]bool) {
	entries, err := p.Tree.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := source.Join(dir, e.Name())
		switch ext := path.Ext(name); {
		case e.IsDir():
			p.unlinked(name, linked, out)
		case (ext == ".yml" || ext == ".yaml" || ext == ".j2" || path.Base(dir) == "templates") &&
			!linked[source.Shown(name)]:
			text, err := p.Tree.ReadFile(name)
			if err != nil {
				continue
			}
			for _, word := range identifiers(string(text)) {
				out[word] = true
			}
		}
	}
}

func (p *pass) unusedRegisters() {
	used := p.elsewhere()
	var prefixes []string // of names that are concatenated: lookup('vars', 'check_' ~ name)
	for word := range used {
		if strings.HasSuffix(word, "_") {
			prefixes = append(prefixes, word)
		}
	}
	for _, x := range p.Watch.exprs {
		for _, r := range x.Reads() {
			used[r.Name] = true
		}
		for _, k := range x.Keys() {
			used[k] = true // hostvars[h].name, vars['name']
			if k = strings.TrimPrefix(k, "^"); strings.HasSuffix(k, "_") {
				prefixes = append(prefixes, k)
			}
		}
	}
	for _, t := range p.tasks {
		if t.Spec == nil {
			continue
		}
		for _, raw := range t.Spec.RawArgs {
			for _, word := range words(t.Syntax.Args.Get(raw)) {
				used[word] = true
			}
			for _, word := range identifiers(t.Syntax.Args.Text()) {
				used[word] = true
			}
		}
	}
	for _, t := range p.tasks {
		if t.Register == "" || used[t.Register] || strings.HasPrefix(t.Register, "_") {
			continue
		}
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(t.Register, prefix) }) {
			continue
		}
		p.report(t, t.At, 0, "leave out register, or name it _"+t.Register+" to keep it",
			"nothing reads '%s', which this task registers", t.Register)
	}
}

// words are the identifiers in a value and in the elements of a list.
func words(v playbook.Value) []string {
	var out []string
	for _, e := range v.Elements() {
		out = append(out, identifiers(e.Text())...)
	}
	return out
}

func identifiers(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

func (p *pass) unusedHandlers() {
	notified := map[string]bool{}
	for _, t := range p.Watch.tasks {
		for _, n := range t.Attrs.Notify {
			text, static := n.Static()
			if !static {
				return // it may be any handler
			}
			if list, ok := text.([]any); ok {
				for _, e := range list {
					notified[plainHandler(e)] = true
				}
				continue
			}
			notified[plainHandler(text)] = true
		}
	}
	reach := map[string]bool{} // roles with tasks that were not linked and may run; "" for any role
	for _, t := range p.Watch.tasks {
		if t.BringsUnknown() {
			reach[roleDir(t)] = true
		}
	}
	for _, t := range p.tasks {
		if !t.Handler || t.Syntax.Name == "" || strings.Contains(t.Syntax.Name, "{{") || reach[""] || reach[roleDir(t)] {
			continue
		}
		names := append([]string{t.Syntax.Name}, t.Listen...)
		if !slices.ContainsFunc(names, func(n string) bool { return notified[n] }) {
			p.report(t, t.At, 0, "notify it, or take it out", "nothing notifies the handler '%s'", t.Syntax.Name)
		}
	}
}

// roleDir is the folder of a task's role; "" when it is in none, or could
// bring in any.
func roleDir(t *project.Task) string {
	if t.Role == nil || t.Include != nil && t.Include.Role {
		return ""
	}
	return t.Role.Path
}

// plainHandler is a handler's name without the role before it.
func plainHandler(v any) string {
	name, _ := v.(string)
	if _, rest, ok := strings.Cut(name, " : "); ok {
		return rest
	}
	return name
}
