package posix

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/module/file"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed acl.sh
var aclScript string

// ACL is the module acl.
type ACL struct {
	Path      string `kk:"path,required,path,alias=name" doc:"file or folder of the host"`
	State     string `kk:"state" default:"query" choices:"absent,present,query" doc:"whether the entry should exist; query only returns the entries"`
	Entry     string `kk:"entry" doc:"entry in the form of setfacl: user:ada:rwx, default:group:ops:rx; in place of etype, entity and permissions"`
	Etype     string `kk:"etype" choices:"group,mask,other,user" doc:"kind of entry"`
	Entity    string `kk:"entity" doc:"user or group; empty is the owner"`
	Perms     string `kk:"permissions" doc:"permissions: any of r, w, x and X"`
	Default   bool   `kk:"default" default:"no" doc:"for a folder: manage and return default entries, which new files in it inherit"`
	Recursive bool   `kk:"recursive,alias=recurse" default:"no" doc:"also change everything below the folder"`
	Follow    bool   `kk:"follow" default:"yes" doc:"change the target of a link"`
	Mask      string `kk:"recalculate_mask" default:"default" choices:"default,mask,no_mask" doc:"whether to recalculate the mask; default does so unless the entry itself is a mask"`
}

func aclSpec() module.Spec {
	return module.Spec{
		Name: "acl", Collection: "ansible.posix",
		Summary: "Manages entries of the access control list of a file, or returns them.",
		Notes:   []string{"The host needs getfacl and setfacl (package acl), and a file system that has POSIX lists."},
		Examples: []string{"- name: Let ada write, now and in what is new\n  acl:\n    path: /srv/app\n    etype: user\n" +
			"    entity: ada\n    permissions: rwX\n    default: \"{{ item }}\"\n    state: present\n  loop: [false, true]",
			"- name: Who may read?\n  acl:\n    path: /srv/app\n  register: who"},
		Returns: []module.Return{
			{Key: "acl", Type: "list of str", Doc: "the entries after the task, as getfacl prints them"},
			{Key: "msg", Type: "str", Doc: "current acl, or the changed entry"},
			{Key: "rc", Type: "int", Doc: "exit status of a failed setfacl; also cmd, stdout and stderr"},
		},
		New: func() module.Runner { return new(ACL) },
	}
}

const entryAlone = "'entry' MUST NOT be set when 'entity', 'etype' or 'permissions' are set"

// Rules implements schema.Ruled.
func (*ACL) Rules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("entry", "etype").Says(entryAlone),
		schema.AtMostOne("entry", "entity").Says(entryAlone),
		schema.AtMostOne("entry", "permissions").Says(entryAlone),
		schema.Refuses("entry").If("state", "query").Says("'entry' MUST NOT be set when 'state=query'"),
		schema.Refuses("recursive").If("state", "query").Says("'recursive' MUST NOT be set when 'state=query'"),
		schema.Refuses("recalculate_mask").If("state", "query").
			Says("'recalculate_mask' MUST NOT be set to 'mask' or 'no_mask' when 'state=query'"),
		schema.Refuses("permissions").If("state", "absent").Says("'permissions' MUST NOT be set when 'state=absent'"),
		schema.AtLeastOne("entry", "entity").If("state", "absent").Says("'entity' MUST be set when 'state=absent'"),
		schema.AtLeastOne("entry", "etype").If("state", "present", "absent").Says("'etype' MUST be set when 'state={state}'"),
	}
}

// Run implements module.Runner.
func (m *ACL) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	entry, err := m.entry()
	if err != nil {
		return module.Result{}, err
	}
	s := hostscript.New(aclScript, `acl_main "$@"`).Args(m).Set("path", file.NormalPath(m.Path))
	s.Flag("default", strings.HasPrefix(entry, "default:"))
	if m.State != "query" {
		s.Words = m.options(entry)
	}
	r, a, err := c.Do(ctx, s)
	if a.Has("rc") {
		r.Data = value.NewDict("cmd", a.Get("cmd"), "rc", a.Number("rc"), "stdout", a.Get("stdout"), "stderr",
			a.Get("stderr"))
	}
	if err != nil {
		return r, err
	}
	r.Msg, r.Data = "current acl", value.NewDict("acl", value.List(aclLines(a.Get("after"))))
	if m.State != "query" {
		r.Msg = strings.TrimPrefix(entry, "default:") + " is " + m.State
	}
	if !c.Check {
		c.Show(&r, m.Path, a.Get("before")+"\n", a.Get("after")+"\n")
	}
	return r, nil
}

// aclLines returns the lines of getfacl. With recursive, an empty line separates two files.
func aclLines(text string) []string {
	lines := module.Lines(text)
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return lines
}

func (m *ACL) options(entry string) []string {
	var w []string
	if m.Recursive {
		w = append(w, "--recursive")
	}
	if !m.Follow {
		w = append(w, "--physical")
	}
	switch m.Mask {
	case "mask":
		w = append(w, "--mask")
	case "no_mask":
		w = append(w, "--no-mask")
	}
	if m.State == "absent" {
		return append(w, "--remove="+entry)
	}
	return append(w, "--modify="+entry)
}

// entry returns the entry in the format of setfacl: without permissions if it is to be removed.
func (m *ACL) entry() (string, error) {
	kind, entity, perms, inherit := m.Etype, m.Entity, m.Perms, m.Default
	if m.State == "query" {
		return "", nil
	}
	if m.Entry != "" {
		parts := strings.Split(m.Entry, ":")
		if parts[0] == "d" || parts[0] == "default" {
			inherit, parts = true, parts[1:]
		}
		if len(parts) < 2 || len(parts) > 3 {
			return "", fmt.Errorf("'entry' MUST have 2 or 3 sections divided by ':', got %q", m.Entry)
		}
		kind, entity = parts[0], parts[1]
		if len(parts) == 3 {
			perms = parts[2]
		}
		long := map[string]string{"u": "user", "g": "group", "o": "other", "m": "mask"}[kind]
		if long != "" {
			kind = long
		}
	}
	switch {
	case kind != "user" && kind != "group" && kind != "other" && kind != "mask":
		return "", fmt.Errorf("state is %s but etype is missing, or none of user, group, other and mask", m.State)
	case m.State == "present" && (perms == "" || strings.Trim(perms, "rwxX-") != ""):
		return "", fmt.Errorf("permissions must be of r, w, x, X and -, got %q", perms)
	case strings.ContainsAny(entity, ":,\n"):
		return "", fmt.Errorf("entity must be one user or group, got %q", entity)
	}
	text := kind + ":" + entity
	if inherit {
		text = "default:" + text
	}
	if m.State == "present" {
		text += ":" + perms
	}
	return text, nil
}
