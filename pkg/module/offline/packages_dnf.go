package offline

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/local"
	"kubekey/pkg/hostscript"
)

//go:embed packages_dnf.sh
var dnfScript string

// dnf resolves with dnf on a machine. It fetches while it resolves.
type dnf struct{ machine }

func newDnf(m *packages, conn connector.Connector, dir string) (*dnf, error) {
	var problems []error
	for _, url := range append(m.Sources.Sources, m.Defaults.Sources...) {
		if strings.ContainsAny(url, " \t\n\x00") || !strings.Contains(url, "://") && !strings.HasPrefix(url, "file:/") {
			problems = append(problems, fmt.Errorf("%q is not a source of dnf: write the URL that is above repodata", url))
		}
	}
	return &dnf{machine{m, conn, dir, dir != ""}}, errors.Join(problems...)
}

func (d *dnf) resolve(ctx context.Context) ([]pkg, error) {
	answer, err := d.run(ctx, dnfScript+`
dnf_resolve "$@"`, d.m.Names)
	if err != nil {
		return nil, err
	}
	return rpms(answer)
}

// rpms reads what the script says of the packages that dnf has fetched.
func rpms(answer hostscript.Answer) ([]pkg, error) {
	if err := answer.Together("file", "nevra", "sha256", "size"); err != nil {
		return nil, err
	}
	var all []pkg
	for i, file := range answer["file"] {
		parts := strings.Fields(answer["nevra"][i])
		sum, _, _ := strings.Cut(answer["sha256"][i], " ")
		size, err := strconv.ParseInt(strings.TrimSpace(answer["size"][i]), 10, 64)
		if len(parts) != 3 || err != nil || size < 0 || !isSHA256(sum) || !fileForm.MatchString(file) {
			return nil, fmt.Errorf("rpm printed %q, %q and %q for the package %q", answer["nevra"][i], answer["sha256"][i],
				answer["size"][i], file)
		}
		all = append(all, pkg{name: parts[0], version: strings.TrimPrefix(parts[1], "0:"), arch: parts[2], sha256: sum,
			size: size, spec: file, fetched: file, file: "Packages/" + file})
	}
	return all, nil
}

func (d *dnf) fetch(context.Context, []string) (string, error) {
	return path.Join(d.dir, "fetched"), nil
}

// metadata makes repodata, with createrepo_c of the control node.
func (d *dnf) metadata(ctx context.Context, repository string, _ []pkg) (files map[string][]byte, err error) {
	out, err := os.MkdirTemp("", "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(out)) }()
	s := hostscript.New(dnfScript, "dnf_metadata").Set("repository", repository).Set("out", out)
	if _, err := s.Run(ctx, local.New(), false); err != nil {
		return nil, err
	}
	files = map[string][]byte{}
	return files, filepath.WalkDir(out, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(out, name)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(rel)], err = os.ReadFile(name)
		return err
	})
}
