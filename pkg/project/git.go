package project

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"kubekey/pkg/redact"
	"kubekey/pkg/source"
)

// Repository is a git repository that contains a project.
type Repository struct {
	URL         string
	Branch, Tag string        // at most one; without either, the default branch of the repository
	Token       redact.Secret // @FILE reads it from a file
	Dir         string        // work directory; the checkout is below it
}

// Checkout fetches the latest state of a repository with the git command, and returns its directory. A new checkout
// replaces the previous one only when it is complete.
func Checkout(ctx context.Context, r Repository) (string, error) {
	sum := sha256.Sum256([]byte(r.URL + "\x00" + r.Branch + "\x00" + r.Tag))
	parent := filepath.Join(r.Dir, "projects")
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", fmt.Errorf("make the folder of projects: %w", err)
	}
	dir := filepath.Join(parent, hex.EncodeToString(sum[:8]))
	tmp, err := os.MkdirTemp(parent, "fetch-")
	if err != nil {
		return "", fmt.Errorf("make the folder of a project: %w", err)
	}
	defer os.RemoveAll(tmp)
	if err := r.fetch(ctx, tmp); err != nil {
		return "", fmt.Errorf("fetch project %s: %w", r.URL, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("replace the earlier checkout: %w", err)
	}
	if err := os.Rename(tmp, dir); err != nil {
		return "", fmt.Errorf("put the checkout in place: %w", err)
	}
	return dir, nil
}

func (r Repository) fetch(ctx context.Context, dir string) error {
	token, err := r.token(ctx)
	if err != nil {
		return err
	}
	// Git's own variables can refer to a repository that kk was started in.
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_DIR=") || strings.HasPrefix(v, "GIT_WORK_TREE=") })
	git := gitIn{dir, append(env, "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")}
	if token != "" {
		// The helper is called for this address only, not for the target of a redirect.
		git.env = append(git.env, "KK_TOKEN="+token, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=credential."+r.URL+".helper",
			`GIT_CONFIG_VALUE_0=!f() { [ "$1" = get ] && echo username=kk && echo "password=$KK_TOKEN"; }; f`)
	}
	ref := "HEAD"
	switch {
	case r.Branch != "":
		ref = "refs/heads/" + r.Branch
	case r.Tag != "":
		ref = "refs/tags/" + r.Tag
	}
	for _, args := range [][]string{
		{"init", "--quiet"}, {"fetch", "--quiet", "--depth=1", "--no-tags", "--", r.URL, ref},
		{"checkout", "--quiet", "--detach", "FETCH_HEAD"},
	} {
		if err := git.run(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// gitIn runs the git command in a directory.
type gitIn struct {
	dir string
	env []string
}

func (g gitIn) run(ctx context.Context, args ...string) error {
	cmd := exec.Command("git", append([]string{"-c", "core.hooksPath=/dev/null"}, args...)...)
	cmd.Dir, cmd.Env = g.dir, g.env
	_, err := source.Program{Cmd: cmd, Max: source.MaxSecret}.Output(ctx)
	failed := (*source.ProgramError)(nil)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("there is no program git here: install it, or fetch the project and name its playbook by a path")
	case ctx.Err() == nil && errors.As(err, &failed):
		return errors.New(cmp.Or(failed.Stderr, "git "+args[0]+" failed: "+err.Error()))
	}
	return err
}

func (r Repository) token(ctx context.Context) (string, error) {
	path, isFile := strings.CutPrefix(r.Token.Reveal(), "@")
	if !isFile {
		return r.Token.Reveal(), nil
	}
	text, err := source.Tree{}.WithContext(ctx).Raw().Read(path, source.MaxSecret)
	if err != nil {
		return "", fmt.Errorf("read the token of the project: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
