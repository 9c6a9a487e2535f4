package packages

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// Zypper is the module zypper.
type Zypper struct {
	Name              []string `kk:"name,required,alias=pkg" doc:"names, files or URLs of packages; NAME=1.0, NAME>=1.0 and the like select a version and imply oldpackage, -NAME removes a package in the same transaction; '*' with state: latest or dist-upgrade means all"`
	State             string   `kk:"state" default:"present" choices:"present,installed,absent,removed,latest,dist-upgrade" doc:"desired state; latest is the newest version in the repositories, dist-upgrade (with the name '*') upgrades the distribution"`
	Type              string   `kk:"type" default:"package" choices:"package,patch,pattern,product,srcpackage,application" doc:"type of the named packages"`
	UpdateCache       bool     `kk:"update_cache,alias=refresh" default:"no" doc:"update the package lists first"`
	DisableGPGCheck   bool     `kk:"disable_gpg_check" default:"no" doc:"install packages even without a valid signature"`
	Recommends        bool     `kk:"disable_recommends" default:"yes" doc:"do not install recommended packages"`
	Force             bool     `kk:"force" default:"no" doc:"also reinstall, downgrade, or change vendor or architecture"`
	ForceResolution   bool     `kk:"force_resolution" default:"no" doc:"let zypper resolve conflicts between packages"`
	OldPackage        bool     `kk:"oldpackage" default:"no" doc:"allow downgrades"`
	ReplaceFiles      bool     `kk:"replacefiles" default:"no" doc:"install packages even if they overwrite files of other packages"`
	AllowVendorChange bool     `kk:"allow_vendor_change" default:"no" doc:"with state: dist-upgrade, allow packages of another vendor"`
	CleanDeps         bool     `kk:"clean_deps" default:"no" doc:"also remove dependencies of removed packages that are no longer needed"`
	ExtraArgs         string   `kk:"extra_args" doc:"additional options after the zypper command"`
	ExtraArgsBefore   string   `kk:"extra_args_precommand" doc:"additional options before the zypper command"`
}

func zypperSpec() module.Spec {
	return module.Spec{
		Name: "zypper", Collection: "community.general",
		Summary: "Installs and removes packages on SUSE.",
		Notes:   []string{"In check mode zypper predicts the changes."},
		Examples: []string{
			"- name: Install a package\n  zypper:\n    name: conntrack-tools",
			"- name: Upgrade all packages\n  zypper:\n    name: \"*\"\n    state: latest",
		},
		Returns: append(packageReturns(),
			module.Return{Key: "cmd", Type: "list", Doc: "the zypper command line, if it was run"},
			module.Return{Key: "name", Type: "list", Doc: "as given"},
			module.Return{Key: "state", Type: "str", Doc: "as given"},
			module.Return{Key: "update_cache", Type: "bool", Doc: "as given"}),
		New: func() module.Runner { return new(Zypper) },
	}
}

// Rules implements schema.Ruled.
func (*Zypper) Rules() schema.Rules {
	return schema.Rules{
		schema.Looks("the name of a package", schema.OneLine, "name"),
	}
}

// Run implements module.Runner.
func (m *Zypper) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	s := hostscript.New(rpmScript, zypperScript, `zypper_main "$@"`)
	m.params(s)
	s.Set("state", packageState(m.State))
	s.Words = slices.DeleteFunc(slices.Clone(m.Name), func(name string) bool { return name == "" })
	a, err := s.Run(ctx, c.Conn, c.Check)
	if a == nil {
		return module.Result{}, err
	}
	return zypperResult(c, a, s.Words, m.State, m.UpdateCache, err), nil
}

// params uses separate names for parameters that have another meaning in other managers.
func (m *Zypper) params(s *hostscript.Script) {
	s.Args(m).Set("zypper_type", m.Type).Flag("zypper_force", m.Force)
}

// Exit codes of zypper that are not failures, from its manual.
const (
	zypperRebootNeeded = 102
	zypperNotFound     = 104
)

// zypperResult is the result of the last call of zypper: it changed what it lists.
func zypperResult(c *module.Call, a hostscript.Answer, names []string, state string, update bool,
	err error) module.Result {
	data := value.NewDict()
	r := module.Result{Data: data}
	fail := func(msg string) module.Result {
		r.Failed, r.Changed, r.Msg = true, false, msg
		return r
	}
	if a.Has("rc") {
		data.Set("rc", a.Number("rc"))
		data.Set("cmd", value.List(module.Lines(a.Get("cmd"))))
	}
	list, said := &zypperList{}, error(nil)
	for _, text := range a["stdout"] {
		said = errors.Join(said, list.read(text))
	}
	r.Changed = len(list.lines) > 0
	rc := a.Number("rc")
	ill := rc != 0 && rc != zypperRebootNeeded
	if r.Changed || ill || said != nil {
		data.Set("stdout", module.Printed(a.Get("stdout")))
		data.Set("stderr", module.Printed(a.Get("stderr")))
	}
	switch {
	case err != nil:
		return fail(err.Error())
	case said != nil:
		return fail(fmt.Sprintf("Failed to parse zypper xml output: %v", said))
	case rc == zypperNotFound && list.message != "":
		return fail(list.message)
	case ill:
		return fail(strings.TrimSpace(fmt.Sprintf("Zypper run command failed with return code %d. %s", rc, list.message)))
	}
	data.Merge(value.NewDict("name", value.List(names), "state", state, "update_cache", update, "rc", rc))
	if diff := list.String(); c.Diff && diff != "" {
		r.Diff = []event.Diff{{Prepared: diff}}
	}
	return r
}

// zypperList holds the changes of zypper, done or predicted, and its last message.
type zypperList struct {
	lines   map[string][]string // by the name of the list
	message string
}

// read adds the output of zypper --xmlout.
func (l *zypperList) read(text string) error {
	d, inside := xml.NewDecoder(strings.NewReader(text)), []string{}
	for {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		switch token := token.(type) {
		case xml.EndElement:
			inside = inside[:len(inside)-1]
		case xml.StartElement:
			if token.Name.Local == "solvable" && len(inside) > 0 {
				l.add(inside[len(inside)-1], token.Attr)
			}
			inside = append(inside, token.Name.Local)
		case xml.CharData:
			if len(inside) > 0 && inside[len(inside)-1] == "message" {
				l.message = strings.TrimSpace(string(token))
			}
		}
	}
}

func (l *zypperList) add(list string, attrs []xml.Attr) {
	p := map[string]string{}
	for _, a := range attrs {
		p[a.Name.Local] = a.Value
	}
	line := p["name"]
	if list == "to-upgrade" {
		line += " (" + p["edition-old"] + " => " + p["edition"] + ")"
	}
	if l.lines == nil {
		l.lines = map[string][]string{}
	}
	l.lines[list] = append(l.lines[list], line)
}

// String is Ansible's diff.
func (l *zypperList) String() string {
	var b strings.Builder
	for _, group := range [][2]string{{"to-install", "installed"}, {"to-remove", "removed"}, {"to-upgrade", "upgraded"}} {
		if all := l.lines[group[0]]; len(all) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", group[1], strings.Join(all, ", "))
		}
	}
	return b.String()
}
