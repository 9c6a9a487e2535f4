package kube

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed helm_repository.sh
var repositoryScript string

// Repository is the module helm_repository.
type Repository struct {
	Name     string        `kk:"repo_name,required,alias=name" doc:"of the repository"`
	URL      string        `kk:"repo_url,alias=url" doc:"its address; required with state: present"`
	Username string        `kk:"repo_username,alias=username" doc:"user of the repository; with repo_password"`
	Password redact.Secret `kk:"repo_password,alias=password" doc:"the user's password"`
	State    string        `kk:"repo_state,alias=state" default:"present" choices:"present,absent" doc:"whether the host's helm knows the repository"`
	PassOn   bool          `kk:"pass_credentials" default:"no" doc:"show user and password to the other hosts, too, that the repository's index sends to"`
	Force    bool          `kk:"force_update,alias=force" default:"no" doc:"add the repository anew, with another address or other credentials; each run counts as a change"`
	Helm     string        `kk:"binary_path,alias=binary" default:"helm" doc:"the program on the host: a name or a path"`
}

func repositorySpec() module.Spec {
	return module.Spec{
		Name: "helm_repository", Collection: "kubernetes.core", Former: "community.kubernetes", Groups: []string{"helm"},
		Summary: "Makes repositories of charts known to a host's helm.",
		Notes: []string{
			"They are those of the task's user, and lie in repositories.yaml of helm's configuration, whose folder the variable HELM_CONFIG_HOME of the task's environment may name.",
			"helm reads the repository's index when it is added. The password reaches it on standard input.",
			"A repository of the name with another address is an error without force_update.",
		},
		Examples: []string{
			"- name: Charts of the shop\n  helm_repository:\n    name: shop\n    repo_url: https://charts.example.org/shop\n    repo_username: reader\n    repo_password: \"{{ charts_password }}\"",
			"- name: Away with it\n  helm_repository:\n    name: shop\n    state: absent",
		},
		Returns: []module.Return{
			{Key: "repo_name", Type: "str", Doc: "of the repository"},
			{Key: "repo_url", Type: "str", Doc: "the address of the task"},
			{Key: "stdout", Type: "str", Doc: "what helm said, if it had something to do"},
		},
		New: func() module.Runner { return new(Repository) },
	}
}

// repositoryName is a name that helm can look charts up by.
var repositoryName = regexp.MustCompile(`^[A-Za-z0-9_.][-A-Za-z0-9_.]*$`)

// Rules implements schema.Ruled.
func (*Repository) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("repo_name"),
		schema.Looks("the name of a repository: letters, digits, -, _ and .", repositoryName.MatchString, "repo_name"),
		schema.Needs("repo_url").If("repo_state", "present"),
		schema.Address("repo_url"),
		schema.AllOrNone("repo_username", "repo_password"),
	}
}

// Run implements module.Runner.
func (m *Repository) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	s := hostscript.New(library, repositoryScript, "helm_repository").Args(m)
	s.Stdin = strings.NewReader(m.Password.Reveal())
	a, err := run(ctx, c, s)
	r := module.Result{Data: value.NewDict("repo_name", m.Name, "repo_url", m.URL)}
	var missing *missingError
	switch {
	case c.Check && errors.As(err, &missing):
		r.Changed, r.Warnings = m.State == "present", []string{err.Error()}
		return r, nil
	case err != nil:
		return module.Result{}, err
	case a.Has("other"):
		return fail(r, fmt.Errorf("the host's helm has a repository %s already, with the address %s: set force_update to give it another", m.Name, a.Get("other")))
	case a.Has("error"):
		return fail(r, fmt.Errorf("repository %s: %s", m.Name, strings.TrimPrefix(strings.TrimSpace(a.Get("error")), "Error: ")))
	}
	r.Changed = a.Changed()
	if a.Has("stdout") {
		r.Data.Set("stdout", a.Get("stdout"))
	}
	return r, nil
}
