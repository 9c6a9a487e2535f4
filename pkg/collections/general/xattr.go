package general

import (
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/module/file"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed xattr.sh
var xattrScript string

// XAttr is the module xattr.
type XAttr struct {
	Path      string  `kk:"path,required,path,alias=name" doc:"file or folder of the host"`
	State     string  `kk:"state" default:"read" choices:"absent,all,keys,present,read" doc:"whether the attribute should exist; read returns key, all returns all attributes, keys their names"`
	Namespace string  `kk:"namespace" default:"user" doc:"namespace of key: user, trusted, security or system"`
	Key       string  `kk:"key" doc:"name of the attribute, with or without its namespace"`
	Value     *string `kk:"value" doc:"value of the attribute; implies state: present"`
	Follow    bool    `kk:"follow" default:"yes" doc:"use the target of a link"`
}

func xattrSpec() module.Spec {
	return module.Spec{
		Name: "xattr", Collection: "community.general",
		Summary: "Manages extended attributes of a file, or returns them.",
		Notes: []string{"The host needs getfattr and setfattr (package attr). The value appears on a command line of " +
			"the host: do not use it for secrets."},
		Examples: []string{"- name: Mark where it came from\n  xattr:\n    path: /srv/app/data\n    key: origin\n" +
			"    value: backup of monday", "- name: What is marked?\n  xattr:\n    path: /srv/app/data\n    state: all\n" +
			"  register: marks"},
		Returns: []module.Return{
			{Key: "xattr", Type: "dict", Doc: "attributes: for keys and all those of the name space, without key for read " +
				"too; for read the one, and for a change what it was before"},
			{Key: "msg", Type: "str", Doc: "what was read or done"},
		},
		New: func() module.Runner { return new(XAttr) },
	}
}

var xattrName = regexp.MustCompile(`^(user|trusted|security|system)\.\S`)

// Rules implements schema.Ruled.
func (*XAttr) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("key").If("state", "present", "absent"),
		schema.Needs("key").With("value").If("state", "read"),
		schema.Needs("value").If("state", "present"),
	}
}

// Run implements module.Runner.
func (m *XAttr) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	state := m.State
	if m.Value != nil && state == "read" {
		state = "present"
	}
	key := m.Key
	if key != "" && !xattrName.MatchString(key) {
		key = m.Namespace + "." + key
	}
	if key != "" && !xattrName.MatchString(key) {
		return module.Result{}, fmt.Errorf("%q is not a name of an attribute", key)
	}
	s := hostscript.New(xattrScript, "xattr_main").Args(m)
	s.Set("path", file.NormalPath(m.Path)).Set("key", key).Set("state", state)
	r, a, err := c.Do(ctx, s)
	if err == nil && !a.Has("before") {
		err = errors.New("the host did not return the attributes of the file")
	}
	if err != nil {
		return module.Result{}, err
	}
	m.describe(c, &r, a, state, key)
	return r, nil
}

// describe adds the requested attributes to the result.
func (m *XAttr) describe(c *module.Call, r *module.Result, a hostscript.Answer, state, key string) {
	before, all := readAttributes(a["before"][0]), readAttributes(a.Get("before"))
	shown := value.NewDict()
	for k, v := range before.All() {
		name := value.Str(k)
		switch {
		case key != "" && name != key, key == "" && !strings.HasPrefix(name, m.Namespace+"."):
		case state == "keys":
			shown.Set(k, "")
		default:
			shown.Set(k, v)
		}
	}
	r.Data.Set("xattr", shown)
	switch {
	case state == "present":
		r.Msg = fmt.Sprintf("%s set to %s", key, *m.Value)
	case state == "absent":
		r.Msg = key + " removed"
		all.Delete(key)
	case state == "keys":
		r.Msg = "returning all keys"
	case state == "all", key == "":
		r.Msg = "dumping all"
	default:
		r.Msg = "returning " + key
	}
	if !c.Check {
		c.Show(r, m.Path, before, all)
	}
}

// readAttributes parses the output of getfattr -d: name="text", with octal escapes, or name=0sBASE64.
func readAttributes(dump string) *value.Dict {
	d := value.NewDict()
	for _, line := range strings.Split(dump, "\n") {
		name, text, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		if coded, is := strings.CutPrefix(text, "0s"); is {
			if b, err := base64.StdEncoding.DecodeString(coded); err == nil {
				text = string(b)
			}
		} else if plain, err := strconv.Unquote(text); err == nil {
			text = plain
		}
		d.Set(name, text)
	}
	return d
}
