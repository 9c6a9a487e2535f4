package cli

import (
	"context"

	"github.com/spf13/pflag"

	"kubekey/pkg/engine"
	"kubekey/pkg/project"
)

// projectFlags name a project in a git repository.
type projectFlags struct{ addr, branch, tag, token string }

func (p *projectFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&p.addr, "project-addr", "", "git repository that contains the playbook")
	f.StringVar(&p.branch, "project-branch", "", "branch of the repository")
	f.StringVar(&p.tag, "project-tag", "", "tag of the repository")
	f.StringVar(&p.token, "project-token", "", "access token for the repository; @FILE reads it from a file")
}

// valid rejects flags that have no effect without another flag, or that conflict with one.
func (p *projectFlags) valid() error {
	if p.addr == "" && (p.branch != "" || p.tag != "" || p.token != "") {
		return usage("--project-branch, --project-tag and --project-token need --project-addr")
	}
	if p.branch != "" && p.tag != "" {
		return usage("set --project-branch or --project-tag, not both")
	}
	return nil
}

// checkout fetches the project and returns its folder.
func (a *app) checkout(ctx context.Context, p *projectFlags, workdir string) (string, error) {
	dir, err := workDir(workdir)
	if err != nil {
		return "", err
	}
	dir, err = project.Checkout(ctx, project.Repository{
		URL: p.addr, Branch: p.branch, Tag: p.tag, Token: a.secret.Secret(p.token), Dir: dir,
	})
	if err != nil {
		return "", &exitError{engine.ExitError, err}
	}
	return dir, nil
}
