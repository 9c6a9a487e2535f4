package project

import (
	"context"

	"kubekey/pkg/playbook"
	"kubekey/pkg/source"
	"kubekey/pkg/vars"
)

// place is the place in a project at which steps are linked: the attributes that they inherit, the variables that
// they see, and the directories that are searched for their files.
type place struct {
	play     *Play
	role     *Role
	attrs    Attrs
	static   vars.Static
	dirs     []string // directories of the files that led here, nearest first
	files    []string // static includes that led here, to detect cycles
	trace    []source.Frame
	handlers bool
	kind     string // "tasks" or "handlers": the directory in a role
}

func (p place) ctx() context.Context { return context.Background() }

func (p place) framed(what string, at source.Pos) place {
	p.trace = append([]source.Frame{{What: what, At: at}}, p.trace...)
	return p
}

func (p place) inside(dir string) place {
	p.dirs = append([]string{dir}, p.dirs...)
	return p
}

// Magic implements vars.Magic. It provides the variables that are known before there is a host.
func (p place) Magic(name string, _ *vars.View) (any, bool, error) {
	if name == "playbook_dir" {
		return p.play.Dir, p.play.Dir != "", nil
	}
	v, ok := p.role.Variable(name)
	return v, ok, nil
}

// MagicNames implements vars.Magic.
func (p place) MagicNames() []string { return playbook.MagicNames() }

// searchPath returns the directories that are searched for relative paths of files, templates and vars: those of the
// role, the parent roles, the task file and the playbook.
func (p place) searchPath() []string {
	var out []string
	add := func(dir string) {
		for _, have := range out {
			if have == dir {
				return
			}
		}
		out = append(out, dir)
	}
	for r := p.role; r != nil; r = r.Parent {
		add(r.Path)
	}
	if len(p.dirs) > 0 {
		add(p.dirs[0])
	}
	add(p.play.Dir)
	return out
}
