package project

import (
	"fmt"
	"slices"

	"kubekey/pkg/module"
	"kubekey/pkg/module/library"
	"kubekey/pkg/source"
)

// module finds the module of a task. As in Ansible, an executable of the project overrides a module of kk. Roles for
// many systems contain tasks with collection modules for systems other than the host's. A module that kk does not
// have is only a warning if a condition can keep hosts from running the task.
func (l *Linker) module(name string, at source.Pos, where place, conditional bool,
	ds *source.Diagnostics) *module.Spec {
	builtin := l.Modules.Find(name)
	own, err := l.own(name, where)
	switch {
	case err == nil && own != nil:
		return own
	case err != nil && builtin != nil:
		ds.Add(withTrace(source.Warningf(at, "kk's own module %s is used: %s", name, err), where))
	case err != nil:
		ds.Add(withTrace(source.Errorf(at, "module %s: %s", name, err), where))
	}
	if builtin == nil && err == nil && conditional && isElsewhere(name) {
		d := source.Warningf(at, "couldn't resolve module/action '%s'", name).
			WithHelp("kk has no such module: the task fails on hosts on which its condition holds")
		d.Width = len(name)
		ds.Add(withTrace(d, where))
		return module.Missing(name)
	}
	if builtin == nil && err == nil {
		ds.Add(withTrace(l.noModule(name, at), where))
	}
	return builtin
}

// own finds an executable of the project. It searches library/ of the role and of the roles that led to it, of the
// playbook directory, and of the other roles of the play.
func (l *Linker) own(name string, where place) (*module.Spec, error) {
	var dirs []string
	for r := where.role; r != nil; r = r.Parent {
		dirs = append(dirs, r.Path)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	dirs = append(append(dirs, where.play.Dir), where.play.rolePaths...)
	for _, dir := range dirs {
		dir = source.Join(dir, library.Folder)
		programs, known := l.programs[dir]
		if !known {
			programs = library.Programs(l.Tree, dir)
			l.programs[dir] = programs
		}
		file := programs[name]
		if file == "" {
			continue
		}
		made, ok := l.owned[file]
		if !ok {
			if made.spec, made.err = library.Spec(l.Tree, file, name); made.err != nil {
				made.err = fmt.Errorf("%s %w", source.Shown(file), made.err)
			}
			l.owned[file] = made
		}
		return made.spec, made.err
	}
	return nil, nil
}

// learnRole makes the modules of a role available in the whole play.
func (l *Linker) learnRole(p *Play, dir string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(p.rolePaths, dir) {
		p.rolePaths = append(p.rolePaths, dir)
	}
}

// ownModule is an executable of the project, or the reason why it cannot be run.
type ownModule struct {
	spec *module.Spec
	err  error
}
