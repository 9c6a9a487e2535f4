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
	Name     string        `kk:"repo_name,required,alias=name" doc:"name of the repository"`
	URL      string        `kk:"repo_url,alias=url" doc:"URL of the repository; required with state: present"`
	Username string        `kk:"repo_username,alias=username" doc:"user name for the repository; with repo_password"`
	Password redact.Secret `kk:"repo_password,alias=password" doc:"password of the user"`
	State    string        `kk:"repo_state,alias=state" default:"present" choices:"present,absent" doc:"whether the repository should be configured"`
	PassOn   bool          `kk:"pass_credentials" default:"no" doc:"also send the credentials to other hosts that the index of the repository refers to"`
	Force    bool          `kk:"force_update,alias=force" default:"no" doc:"replace the repository, with a new URL or new credentials; always a change"`
	Helm     string        `kk:"binary_path,alias=binary" default:"helm" doc:"name or path of the command on the host"`
}

func repositorySpec() module.Spec {
	return module.Spec{
		Name: "helm_repository", Collection: "kubernetes.core", Former: "community.kubernetes", Groups: []string{"helm"},
		Summary: "Manages chart repositories of helm on the host.",
		Notes: []string{
			"Repositories belong to the user of the task. They are in repositories.yaml in the config folder of helm, " +
				"which HELM_CONFIG_HOME in the environment of the task overrides.",
			"helm reads the index of a repository when it is added. The password is passed on standard input.",
			"An existing repository with the same name and another URL is an error, unless force_update is set.",
		},
		Examples: []string{
			"- name: Add a chart repository\n  helm_repository:\n    name: shop\n" +
				"    repo_url: https://charts.example.org/shop\n    repo_username: reader\n" +
				"    repo_password: \"{{ charts_password }}\"",
			"- name: Remove a chart repository\n  helm_repository:\n    name: shop\n    state: absent",
		},
		Returns: []module.Return{
			{Key: "repo_name", Type: "str", Doc: "name of the repository"},
			{Key: "repo_url", Type: "str", Doc: "the URL in the task"},
			{Key: "stdout", Type: "str", Doc: "output of helm, if it was run"},
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
		return fail(r, fmt.Errorf("the host's helm has a repository %s already, with the address %s: set force_update "+
			"to give it another", m.Name, a.Get("other")))
	case a.Has("error"):
		return fail(r, fmt.Errorf("repository %s: %s", m.Name,
			strings.TrimPrefix(strings.TrimSpace(a.Get("error")), "Error: ")))
	}
	r.Changed = a.Changed()
	if a.Has("stdout") {
		r.Data.Set("stdout", a.Get("stdout"))
	}
	return r, nil
}
