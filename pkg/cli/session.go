package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"kubekey/pkg/config"
	"kubekey/pkg/engine"
	"kubekey/pkg/expr"
	"kubekey/pkg/inventory"
	"kubekey/pkg/lint"
	"kubekey/pkg/module"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// inputs are the flags that select the hosts and variables of a command.
type inputs struct {
	inventories []string
	configs     []string
	extra       []string
	sets        []string
	limit       []string
	artifacts   []string
	workdir     string
	playbooks   []string    // paths; empty means the working folder
	watch       *lint.Watch // receives what is compiled and linked; may be nil
	vault       vaultFlags
}

func (in *inputs) flags(f *pflag.FlagSet) {
	f.StringArrayVarP(&in.inventories, "inventory", "i", nil,
		"inventory: a file, a folder, an executable, or a comma-separated list of hosts; may be repeated")
	f.StringArrayVarP(&in.configs, "config", "c", nil,
		"variable file: kind Config, or a plain mapping; may be repeated, later files override earlier ones")
	f.StringArrayVarP(&in.extra, "extra-vars", "e", nil,
		"variables: key=value pairs, YAML or JSON, or @FILE; may be repeated")
	f.StringArrayVar(&in.sets, "set", nil, "set one variable by its path: a.b[0].c=value; may be repeated")
	f.StringSliceVarP(&in.limit, "limit", "l", nil, "run only on these hosts: patterns, @FILE, or @failed of the last run")
	f.StringVar(&in.workdir, flagWorkdir, "",
		"folder for the journal, hooks and generated files (default $KK_WORKDIR or ~/.kk)")
	in.vault.flags(f)
}

// artifactFlag adds the flag of commands that can read everything from offline files.
func (in *inputs) artifactFlag(f *pflag.FlagSet) {
	f.StringArrayVarP(&in.artifacts, "artifact", "a", nil,
		"offline file (`kk artifact export`) that everything is read from, and nothing from the network; may be repeated")
}

// offline returns --artifact as the --set of the config key that it stands for.
func (in *inputs) offline() ([]string, error) {
	if len(in.artifacts) == 0 {
		return nil, nil
	}
	var files []any
	for _, f := range in.artifacts {
		abs, err := filepath.Abs(f)
		if err != nil {
			return nil, err
		}
		files = append(files, abs)
	}
	text, err := value.JSON(files, value.JSONOptions{})
	return []string{"artifact.files=" + text}, err
}

// session contains everything that a command needs to evaluate and run.
type session struct {
	id             string
	workDir        string
	templates      *template.Engine
	modules        *module.Registry
	inventory      *inventory.Inventory
	inventoryFails bool // the inventory has errors and must not be used
	noInventory    bool // playbooks are linted without an inventory
	given          config.Given
	extra          []*vars.Layer
	diagnostics    source.Diagnostics // from begin until the playbooks are linked
}

func newID(now time.Time) string {
	b := make([]byte, 3)
	_, _ = rand.Read(b)
	return now.Format("20060102-150405-") + hex.EncodeToString(b)
}

// newTemplates returns the expression and template engine of a run, including the filters and tests that the
// projects of the playbooks define.
func (a *app) newTemplates(id string, in *inputs) (*template.Engine, source.Diagnostics) {
	playbooks, watch := in.playbooks, in.watch
	if len(playbooks) == 0 {
		if wd, err := os.Getwd(); err == nil {
			playbooks = []string{wd + "/none"}
		}
	}
	var e *template.Engine
	o := expr.Options{Files: a.tree, Seed: id,
		Template: func(ctx context.Context, f expr.TemplateFile, s expr.Scope) (string, error) {
			return e.RenderFile(ctx, f, s)
		}}
	var told []template.Option
	if watch != nil {
		o.Seen = watch.Expr
		told = append(told, template.Bound(watch.Bound))
	}
	plugins, ds := project.Plugins(a.tree, playbooks, a.settings.RolesPath)
	env, more := expr.New(o, Libraries()...).With(plugins)
	e = template.New(env, a.tree, told...)
	return e, append(ds, more...)
}

// open reads the inventory, the config and the variables. All problems are reported together, with exit code 4.
func (a *app) open(ctx context.Context, in *inputs) (*session, error) {
	s, err := a.begin(ctx, in)
	if err != nil {
		return nil, err
	}
	if s.diagnostics.Err() != nil {
		return nil, &exitError{engine.ExitInput, s.diagnostics}
	}
	return s, nil
}

// begin is like open, but leaves the problems in the session and does not fail on them.
func (a *app) begin(ctx context.Context, in *inputs) (*session, error) {
	s := &session{id: newID(time.Now()), diagnostics: a.settingProblems}
	var err error
	if s.workDir, err = workDir(in.workdir); err != nil {
		return nil, err
	}
	if s.modules, err = Modules(); err != nil {
		return nil, err
	}
	if err := a.unlock(ctx, &in.vault); err != nil {
		return nil, err
	}
	var plugins source.Diagnostics
	s.templates, plugins = a.newTemplates(s.id, in)
	o := inventory.Options{Tree: a.tree, Secrets: a.secret}
	var found source.Diagnostics
	if len(in.inventories) == 0 {
		s.inventory, found = inventory.Default(ctx, o)
	} else {
		s.inventory, found = inventory.Load(ctx, in.inventories, o)
	}
	s.inventoryFails = found.Err() != nil
	s.noInventory = in.watch != nil && len(in.inventories) == 0
	s.diagnostics.Add(found...)
	var given, layers source.Diagnostics
	reader := a.configReader()
	offline, err := in.offline()
	if err != nil {
		return nil, err
	}
	s.given, given = reader.Given(in.configs, in.extra, append(offline, in.sets...))
	s.extra, layers = reader.Layers(s.given, s.templates)
	s.diagnostics.Add(append(append(plugins, given...), layers...)...)
	return s, nil
}

// linker returns the linker of a session.
func (a *app) linker(s *session, sel project.Selection) *project.Linker {
	return project.New(a.linkerOptions(s, sel))
}

func (a *app) linkerOptions(s *session, sel project.Selection) project.Options {
	return project.Options{
		Tree: a.tree, Engine: s.templates, Modules: s.modules, Selection: sel, Extra: s.extra,
		RolePaths: a.settings.RolesPath, CollectionPaths: a.settings.CollectionsPath, Secrets: a.secret,
		Gather: project.Gathering{Subset: a.settings.GatherSubset, Timeout: a.settings.GatherTimeout,
			FactPath: a.settings.FactPath},
		MissingHandlerWarns: !a.settings.ErrorOnMissingHandler,
	}
}
