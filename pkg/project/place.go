package project

import (
	"context"

	"kubekey/pkg/playbook"
	"kubekey/pkg/source"
	"kubekey/pkg/vars"
)

// place is where in a project steps are linked: what they inherit, which
// variables they see, where their files are looked for.
type place struct {
	play     *Play
	role     *Role
	attrs    Attrs
	static   vars.Static
	dirs     []string // of the files that led here, nearest first
	files    []string // static includes that led here, for cycles
	trace    []source.Frame
	handlers bool
	kind     string // "tasks" or "handlers": the folder of a role
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

// Magic implements vars.Magic: what is known of a place before there is a host.
func (p place) Magic(name string, _ *vars.View) (any, bool, error) {
	if name == "playbook_dir" {
		return p.play.Dir, p.play.Dir != "", nil
	}
	v, ok := p.role.Variable(name)
	return v, ok, nil
}

// MagicNames implements vars.Magic.
func (p place) MagicNames() []string { return playbook.MagicNames() }

// searchPath is where relative paths of files, templates and vars are looked
// for: role, parent roles, the task file's folder, the playbook's.
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
