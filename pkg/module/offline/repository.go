package offline

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"kubekey/pkg/artifact"
	"kubekey/pkg/connector"
	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed repository.sh
var repositoryScript string

func repositorySpec() module.Spec {
	return module.Spec{
		Name: "artifact_repository", Collection: "kk",
		Summary: "Copies the repository of a host's distribution from offline files to the host.",
		Notes: []string{
			"Packages that are installed in the version of the repository are not sent; its metadata lists them all the " +
				"same. A file that the host has already is not sent.",
		},
		Examples: []string{
			"- name: Copy packages\n  artifact_repository:\n    artifact: [/srv/kubernetes.tar]\n" +
				"    distributions: [debian-12.5, debian-12]\n    arch: amd64\n    dest: /var/lib/app-packages",
		},
		Returns: []module.Return{
			{Key: "distribution", Type: "str", Doc: "distribution of the repository"},
			{Key: "sent", Type: "int", Doc: "number of files that were sent"},
			{Key: "bytes", Type: "int", Doc: "bytes that were sent"},
		},
		New: func() module.Runner { return &repository{} },
	}
}

type repository struct {
	Artifact      []string `kk:"artifact,required" doc:"offline files on the control node"`
	Distributions []string `kk:"distributions,required" doc:"names of the host's distribution; the first one that the files have is used"`
	Arch          string   `kk:"arch,required" choices:"amd64,arm64" doc:"architecture of the host"`
	Dest          string   `kk:"dest,required,path" doc:"directory on the host"`
	Parallel      int      `kk:"parallel" default:"4" doc:"number of files to send in parallel, 1 to 64"`
}

// Rules implements schema.Ruled.
func (*repository) Rules() schema.Rules {
	return schema.Rules{
		schema.Parses("ID-VERSION, such as debian-12", isDistribution, "distributions"),
		schema.Between("parallel", 1, 64),
	}
}

// packageFile is a file of a repository in an offline file.
type packageFile struct {
	file *artifact.File
	item artifact.Item
	path string // in the repository
}

// repositoryOf returns the repository of a distribution and an architecture, from the first file that has it.
func repositoryOf(set artifact.Set, distribution, arch string) []packageFile {
	below := path.Join("packages", distribution, arch) + "/"
	for _, f := range set {
		var found []packageFile
		for _, i := range f.Manifest.Items {
			if name, ok := strings.CutPrefix(i.File, below); ok && i.Kind == artifact.KindPackage {
				found = append(found, packageFile{f, i, name})
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// Run implements module.Runner.
func (m *repository) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	set, err := c.OfflineFiles(m.Artifact)
	if err != nil {
		return module.Result{}, err
	}
	distribution, files := repositoryFor(set, m.Distributions, m.Arch)
	if len(files) == 0 {
		return module.Result{}, fmt.Errorf("%s: no packages for %s %s are in there: export a file with --os %s --arch %s, "+
			"and add it with -a", strings.Join(m.Artifact, ", "), strings.Join(m.Distributions, " or "), m.Arch,
			m.Distributions[len(m.Distributions)-1], m.Arch)
	}
	if files, err = m.lacking(ctx, c, files); err != nil {
		return module.Result{}, err
	}
	sent, size, err := m.send(ctx, c, files)
	return module.Result{Changed: sent > 0, Data: value.NewDict("distribution", distribution, "sent", sent, "bytes",
		int(size))}, err
}

// lacking creates the directories, and returns the files without the packages that are installed.
func (m *repository) lacking(ctx context.Context, c *module.Call, files []packageFile) ([]packageFile, error) {
	s := hostscript.New(repositoryScript, `repository_main "$@"`)
	s.Large = true
	for _, f := range files {
		if dir := path.Dir(path.Join(m.Dest, f.path)); !slices.Contains(s.Words, dir) {
			s.Words = append(s.Words, dir)
		}
	}
	answer, err := s.Run(ctx, c.Conn, c.Check)
	if err != nil {
		return nil, err
	}
	installed := map[string]bool{}
	for line := range strings.Lines(answer.Get("installed")) {
		installed[strings.TrimSpace(line)] = true
	}
	return slices.DeleteFunc(files, func(f packageFile) bool {
		name := strings.Join([]string{f.item.Name, f.item.Version, f.item.Architecture}, " ")
		return f.item.Version != "" && installed[name]
	}), nil
}

func (m *repository) send(ctx context.Context, c *module.Call, files []packageFile) (sent int, size int64, err error) {
	if c.Check {
		return len(files), 0, nil
	}
	var total, done int64
	for _, f := range files {
		total += f.item.Size
	}
	problems := make([]error, len(files))
	var mu sync.Mutex
	module.Parallel(len(files), m.Parallel, func(i int) {
		f := files[i]
		changed, err := m.put(ctx, c.Conn, f)
		problems[i] = err
		mu.Lock()
		defer mu.Unlock()
		done += f.item.Size
		if changed {
			sent++
			size += f.item.Size
		}
		if c.Progress != nil {
			c.Progress("packages", done, total)
		}
	})
	return sent, size, errors.Join(problems...)
}

func (m *repository) put(ctx context.Context, conn connector.Connector, f packageFile) (changed bool, err error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	content, err := f.file.Content(f.item)
	if err != nil {
		return false, err
	}
	r, err := connector.Put(ctx, conn, connector.File{
		Path: path.Join(m.Dest, f.path), Mode: 0o644, ModeSet: true, Size: f.item.Size, SHA256: f.item.SHA256,
	}, content)
	return r.Changed, errors.Join(err, content.Close())
}
