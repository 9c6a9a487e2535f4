package packages

import (
	"context"
	"fmt"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// Dnf is the module dnf.
type Dnf struct {
	Name            []string `kk:"name,alias=pkg" doc:"names of packages, NAME-VERSION, @GROUP, or package files on the host"`
	List            string   `kk:"list" doc:"change nothing and list packages: installed, available, updates, or a name or pattern; or repos, the enabled repositories"`
	State           string   `kk:"state" default:"present" choices:"present,installed,absent,removed,latest" doc:"desired state; latest is the newest version in the repositories"`
	EnableRepo      []string `kk:"enablerepo" doc:"repositories to enable in addition"`
	DisableRepo     []string `kk:"disablerepo" doc:"repositories to disable"`
	DisableGPGCheck bool     `kk:"disable_gpg_check" default:"no" doc:"install packages even without a valid signature"`
	Exclude         []string `kk:"exclude" doc:"packages to exclude"`
	AllowDowngrade  bool     `kk:"allow_downgrade" default:"no" doc:"allow downgrades"`
	DownloadOnly    bool     `kk:"download_only" default:"no" doc:"download the packages without installing them"`
	NoBest          bool     `kk:"nobest" default:"no" doc:"allow an older version if the newest cannot be installed"`
	AllowErasing    bool     `kk:"allowerasing" default:"no" doc:"allow conflicting packages to be removed"`
	InstallRoot     string   `kk:"installroot" default:"/" doc:"folder on the host to use as root of the installation"`
	Autoremove      bool     `kk:"autoremove" default:"no" doc:"remove dependencies that are no longer needed"`
	ConfFile        string   `kk:"conf_file" doc:"config file of dnf to use"`
	ReleaseVer      string   `kk:"releasever" doc:"release to install packages for. Default: that of the host"`
	SkipBroken      bool     `kk:"skip_broken" default:"no" doc:"skip packages that cannot be installed"`
	UpdateOnly      bool     `kk:"update_only" default:"no" doc:"with state: latest, do not install packages that are missing"`
	Security        bool     `kk:"security" default:"no" doc:"with state: latest, install only security updates"`
	Bugfix          bool     `kk:"bugfix" default:"no" doc:"with state: latest, install only bug fixes"`
	EnablePlugin    []string `kk:"enable_plugin" doc:"dnf plugins to enable"`
	DisablePlugin   []string `kk:"disable_plugin" doc:"dnf plugins to disable"`
	DisableExcludes string   `kk:"disable_excludes" doc:"excludes to ignore: all, main, or those of a repository"`
	SSLVerify       bool     `kk:"sslverify" default:"yes" doc:"verify TLS certificates of repositories"`
	ValidateCerts   bool     `kk:"validate_certs" default:"yes" doc:"verify TLS certificates for packages given by URL, like sslverify"`
	Repoquery       bool     `kk:"install_repoquery" default:"yes" doc:"without effect: repoquery is not used"`
	WeakDeps        bool     `kk:"install_weak_deps" default:"yes" doc:"install recommended packages too"`
	DownloadDir     string   `kk:"download_dir" doc:"folder for download_only"`
	CacheOnly       bool     `kk:"cacheonly" default:"no" doc:"use the existing package lists, and fetch none"`
	UpdateCache     bool     `kk:"update_cache,alias=expire-cache" default:"no" doc:"update the package lists first"`
	LockTimeout     int      `kk:"lock_timeout" default:"30" doc:"seconds to wait for another dnf or yum process"`
}

func dnfSpec() module.Spec {
	return module.Spec{
		Name: "dnf", Aliases: []string{"yum", "dnf5"},
		Summary: "Installs, upgrades and removes packages with dnf, dnf5 or yum.",
		Notes:   []string{"In check mode dnf predicts the changes, and may fetch package lists for that."},
		Examples: []string{
			"- name: Install a package from one repository\n  dnf:\n    name: kubelet-1.34.4\n    enablerepo: kubernetes\n" +
				"    allow_downgrade: true",
		},
		Returns: append(packageReturns(), module.Return{Key: "results", Type: "list", Doc: "changes: Installed: NAME " +
			"and Removed: NAME; empty in check mode. With list, for each package name, epoch, version, release, arch, " +
			"repo, envra, nevra and yumstate (installed or available); for each repository repoid and state"},
			module.Return{Key: "failures", Type: "list",
				Doc: "packages that no repository has, if the task failed because of them"}),
		New: func() module.Runner { return new(Dnf) },
	}
}

func isDnfList(list string) error {
	if !schema.NoDash(list) {
		return fmt.Errorf("%q is neither a dnf list nor the name of a package", list)
	}
	return nil
}

// Rules implements schema.Ruled.
func (*Dnf) Rules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("name", "list"),
		schema.Parses("a list of dnf", isDnfList, "list"),
		packageNames(),
	}
}

// Run implements module.Runner.
func (m *Dnf) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if m.List != "" {
		return m.list(ctx, c)
	}
	s := hostscript.New(rpmScript, `dnf_main "$@"`)
	m.params(s)
	r, err := runPackages(ctx, c, s, m.State, m.Name)
	if err != nil {
		return r, err
	}
	stdout, _ := r.Data.Get("stdout")
	text, _ := stdout.(string)
	r.Data.Set("results", dnfResults(text))
	failures := dnfFailures(text)
	switch {
	case r.Failed && len(failures) > 0:
		r.Data.Set("failures", failures)
		r.Msg = "Failed to install some of the specified packages: " + value.Str(failures[0])
	case r.Failed:
	case !r.Changed:
		r.Msg = "Nothing to do"
	case c.Check:
		r.Msg = "Check mode: No changes made, but would have if not in check mode"
	default:
		r.Data.Set("msg", "")
	}
	return r, nil
}

// list lists packages or repositories.
func (m *Dnf) list(ctx context.Context, c *module.Call) (module.Result, error) {
	s := hostscript.New(rpmScript, "dnf_list")
	m.params(s)
	a, err := s.Run(ctx, c.Conn, c.Check)
	if err != nil {
		return module.Result{}, err
	}
	repos := m.List == "repos" || m.List == "repositories"
	results := []any{}
	for _, text := range a["list"] {
		for _, line := range module.Lines(text) {
			var d *value.Dict
			if repos {
				d = listedRepository(line)
			} else {
				d = listedPackage(line)
			}
			if d != nil {
				results = append(results, d)
			}
		}
	}
	return module.Result{Data: value.NewDict("results", results, "msg", "")}, nil
}

// listedPackage reads a line NAME|EPOCH|VERSION|RELEASE|ARCH|REPOSITORY; nil for any
// other line.
func listedPackage(line string) *value.Dict {
	f := strings.Split(line, "|")
	if len(f) != 6 {
		return nil
	}
	d := value.NewDict("name", f[0], "epoch", f[1], "version", f[2], "release", f[3], "arch", f[4], "repo", f[5])
	full := f[1] + ":" + f[0] + "-" + f[2] + "-" + f[3] + "." + f[4]
	d.Set("envra", full)
	d.Set("nevra", full)
	d.Set("yumstate", "available")
	if f[5] == "@System" {
		d.Set("yumstate", "installed")
	}
	return d
}

// listedRepository reads a line of dnf repolist, which begins with the
// repository; nil for its heading.
func listedRepository(line string) *value.Dict {
	f := strings.Fields(line)
	if len(f) == 0 || f[0] == "repo" && len(f) > 1 && f[1] == "id" {
		return nil
	}
	return value.NewDict("repoid", f[0], "state", "enabled")
}

func (m *Dnf) params(s *hostscript.Script) {
	if s.Args(m); m.InstallRoot == "/" {
		s.Set("installroot", "")
	}
}

// dnfResults lists the changes as Ansible does: installed, then removed. The output of dnf
// ends with lists, each with a heading such as "Installed:" and indented names; packages
// that an upgrade replaces are in a line of the transaction.
func dnfResults(stdout string) []any {
	came, went := []any{}, []any{}
	heading := ""
	for _, line := range module.Lines(stdout) {
		name, headed := strings.CutSuffix(line, ":")
		switch {
		case headed:
			heading = name
		case !strings.HasPrefix(line, " "):
			heading = ""
		case heading == "Installed" || heading == "Upgraded" || heading == "Downgraded" || heading == "Reinstalled":
			for _, word := range strings.Fields(line) {
				came = append(came, "Installed: "+word)
			}
		case heading == "Removed":
			for _, word := range strings.Fields(line) {
				went = append(went, "Removed: "+word)
			}
		default:
			if f := strings.Fields(line); len(f) > 2 && f[0] == "Cleanup" && f[1] == ":" {
				went = append(went, "Removed: "+f[2])
			}
		}
	}
	return append(came, went...)
}

// dnfFailures are the packages that dnf did not find.
func dnfFailures(stdout string) []any {
	out := []any{}
	for _, line := range module.Lines(stdout) {
		if name, ok := strings.CutPrefix(line, "No match for argument: "); ok {
			out = append(out, "No package "+name+" available.")
		}
	}
	return out
}
