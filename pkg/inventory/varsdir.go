package inventory

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"kubekey/pkg/source"
)

// VarsDir is the variables in the group_vars and host_vars folders of one folder.
type VarsDir struct {
	groups, hosts map[string][]*VarSet // by name; several files in order

	locked map[string]source.Diagnostics // errors of files that no password decrypts, by name
}

// needed returns the errors of encrypted files of hosts or groups in the inventory: those of
// other names need no password.
func (d *VarsDir) needed(inv *Inventory) source.Diagnostics {
	var ds source.Diagnostics
	for name, bad := range d.locked {
		if inv.groups[name] != nil || inv.hosts[name] != nil || isLocal(name) {
			ds.Add(bad...)
		}
	}
	return ds.Sort()
}

// varsBeside reads group_vars and host_vars next to a source, once per folder.
func (l *loader) varsBeside(dir string) {
	if l.dirs[dir] {
		return
	}
	l.dirs[dir] = true
	vars, ds := loadVarsDir(l.o.Tree, l.o.Dir, dir, l.inv.secrets)
	l.ds.Add(ds...)
	l.inv.dirs = append(l.inv.dirs, vars)
}

// LoadVars reads the group_vars and host_vars in a playbook's folder, once, and returns their
// problems. VarLayers then includes them.
func (inv *Inventory) LoadVars(playbookDir string) source.Diagnostics {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	inv.varsOf(playbookDir)
	bad := inv.playbookBad[playbookDir]
	if d := inv.playbookDirs[playbookDir]; d != nil {
		bad = append(bad[:len(bad):len(bad)], d.needed(inv)...)
	}
	return bad
}

func (inv *Inventory) varsOf(dir string) *VarsDir {
	if dir == "" {
		return nil
	}
	if vars, ok := inv.playbookDirs[dir]; ok {
		return vars
	}
	vars, ds := loadVarsDir(inv.tree, inv.wd, source.Join(inv.wd, dir), inv.secrets)
	inv.playbookDirs[dir], inv.playbookBad[dir] = vars, ds
	return vars
}

func loadVarsDir(tree source.Tree, wd, dir string, s secretSink) (*VarsDir, source.Diagnostics) {
	r := varsReader{tree: tree, wd: wd, secrets: s, locked: map[string]source.Diagnostics{}}
	vars := &VarsDir{
		groups: r.names(source.Join(dir, "group_vars")),
		hosts:  r.names(source.Join(dir, "host_vars")),
		locked: r.locked,
	}
	return vars, r.ds
}

type varsReader struct {
	tree    source.Tree
	wd      string
	secrets secretSink
	ds      source.Diagnostics

	name   string // of the host or group whose files are read
	locked map[string]source.Diagnostics
}

// endings are the file extensions, in the order of preference.
func endings() []string { return []string{"", ".yml", ".yaml", ".json"} }

// names reads the variables in a folder by name. If a name has several files, the first in the
// order of endings is read, with a warning about the others.
func (r *varsReader) names(dir string) map[string][]*VarSet {
	entries, err := r.tree.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		r.ds.Add(source.Errorf(source.Pos{}, "read variables: %v", err))
		return nil
	}
	files := map[string][]string{}
	for _, e := range entries {
		if name, ok := varsName(e.Name()); ok {
			files[name] = append(files[name], e.Name())
		}
	}
	out := map[string][]*VarSet{}
	for _, name := range sortedKeys(files) {
		found := files[name]
		sort.Slice(found, func(i, j int) bool { return preference(found[i]) < preference(found[j]) })
		for _, ignored := range found[1:] {
			r.ds.Add(source.Warningf(source.Pos{File: source.NewFile(r.show(source.Join(dir, ignored)), nil)},
				"not read, because %s exists, too", found[0]).WithHelp("merge the two"))
		}
		r.name = name
		out[name] = r.read(source.Join(dir, found[0]), 0)
	}
	return out
}

func (r *varsReader) show(path string) string { return source.ShownFrom(r.wd, path) }

func sortedKeys(m map[string][]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// varsName is the group or host of a file or folder. Names may contain dots: only the known
// extensions are removed.
func varsName(file string) (string, bool) {
	if strings.HasPrefix(file, ".") || strings.HasSuffix(file, "~") {
		return "", false
	}
	if ext := filepath.Ext(file); ext != "" && slices.Contains(endings(), ext) {
		return strings.TrimSuffix(file, ext), true
	}
	return file, true
}

func preference(file string) int { return max(0, slices.Index(endings(), filepath.Ext(file))) }

// read reads a file, or all files below a folder in the order of their names.
func (r *varsReader) read(path string, depth int) []*VarSet {
	if !r.tree.IsDir(path) {
		if s := r.file(path); s != nil {
			return []*VarSet{s}
		}
		return nil
	}
	entries, err := r.tree.ReadDir(path)
	if err != nil || depth > 20 {
		r.ds.Add(source.Errorf(source.Pos{}, "read variables below %s: %v", r.show(path), orDeep(err)))
		return nil
	}
	var out []*VarSet
	for _, e := range entries {
		child := source.Join(path, e.Name())
		ext := filepath.Ext(e.Name())
		if _, ok := varsName(e.Name()); ok && (slices.Contains(endings(), ext) || r.tree.IsDir(child)) {
			out = append(out, r.read(child, depth+1)...)
		}
	}
	return out
}

func orDeep(err error) error {
	if err != nil {
		return err
	}
	return errors.New("folders are nested more than 20 levels deep")
}

func (r *varsReader) file(path string) *VarSet {
	f, d := readText(r.tree, path, r.show(path), "variables")
	if d != nil && d.Pos.File != nil && source.IsVault(d.Pos.File.Text) {
		r.locked[r.name] = append(r.locked[r.name], d)
		return nil
	}
	if d != nil {
		r.ds.Add(d)
		return nil
	}
	root, ds := parseYAML(f)
	r.ds.Add(ds...)
	if root == nil {
		return nil
	}
	set, ds := nodeVars(f, root, ds)
	r.ds.Add(ds...)
	if set != nil {
		r.ds.Add(set.oddNames()...)
		r.secrets.tell(set)
	}
	return set
}
