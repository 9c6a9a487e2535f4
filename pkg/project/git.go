package project

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport/http"

	"kubekey/pkg/redact"
	"kubekey/pkg/source"
)

// Repository is a git repository that holds a project.
type Repository struct {
	URL         string
	Branch, Tag string        // at most one; neither is the repository's default
	Token       redact.Secret // @FILE reads it from a file
	Dir         string        // work folder; the checkout goes below it
}

// Checkout fetches the newest state of a repository and returns its folder.
// The fetch replaces an earlier one only when it is whole.
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
	o := &git.CloneOptions{URL: r.URL, Depth: 1, SingleBranch: true}
	switch {
	case r.Branch != "":
		o.ReferenceName = plumbing.NewBranchReferenceName(r.Branch)
	case r.Tag != "":
		o.ReferenceName = plumbing.NewTagReferenceName(r.Tag)
	}
	token, err := r.token(ctx)
	if err != nil {
		return "", err
	}
	if token != "" {
		o.Auth = &http.BasicAuth{Username: "kk", Password: token}
	}
	if _, err := git.PlainCloneContext(ctx, tmp, false, o); err != nil {
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
