package packages

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
)

// Dnf is the module dnf.
type Dnf struct {
	Name            []string `kk:"name,alias=pkg" doc:"packages, NAME-VERSION, @GROUP, or package files of the host"`
	State           string   `kk:"state" default:"present" choices:"present,installed,absent,removed,latest" doc:"installed, not installed, or as new as the repositories have it"`
	EnableRepo      []string `kk:"enablerepo" doc:"repositories to use beside those that are on"`
	DisableRepo     []string `kk:"disablerepo" doc:"repositories not to use"`
	DisableGPGCheck bool     `kk:"disable_gpg_check" default:"no" doc:"install packages without a valid signature"`
	Exclude         []string `kk:"exclude" doc:"packages to leave as they are"`
	AllowDowngrade  bool     `kk:"allow_downgrade" default:"no" doc:"allow an older version to replace a newer one"`
	DownloadOnly    bool     `kk:"download_only" default:"no" doc:"fetch the packages and do not install them"`
	NoBest          bool     `kk:"nobest" default:"no" doc:"take an older version if the newest cannot be installed"`
	AllowErasing    bool     `kk:"allowerasing" default:"no" doc:"allow packages to be removed that are in the way"`
	InstallRoot     string   `kk:"installroot" default:"/" doc:"folder of the host that is the root of what is installed"`
	Autoremove      bool     `kk:"autoremove" default:"no" doc:"remove packages that nothing needs any more"`
	ConfFile        string   `kk:"conf_file" doc:"dnf's settings, instead of its usual file"`
	ReleaseVer      string   `kk:"releasever" doc:"release that packages are for. Default: the host's"`
	SkipBroken      bool     `kk:"skip_broken" default:"no" doc:"leave out packages that cannot be installed"`
	UpdateOnly      bool     `kk:"update_only" default:"no" doc:"with state: latest, leave alone what is not installed"`
	Security        bool     `kk:"security" default:"no" doc:"with state: latest, only what closes security holes"`
	Bugfix          bool     `kk:"bugfix" default:"no" doc:"with state: latest, only what mends errors"`
	EnablePlugin    []string `kk:"enable_plugin" doc:"plugins of dnf to use"`
	DisablePlugin   []string `kk:"disable_plugin" doc:"plugins of dnf not to use"`
	DisableExcludes string   `kk:"disable_excludes" doc:"whose excludes do not count: all, main, or a repository"`
	SSLVerify       bool     `kk:"sslverify" default:"yes" doc:"check the certificates of repositories"`
	WeakDeps        bool     `kk:"install_weak_deps" default:"yes" doc:"install recommended packages too"`
	DownloadDir     string   `kk:"download_dir" doc:"where download_only puts packages"`
	CacheOnly       bool     `kk:"cacheonly" default:"no" doc:"use lists that the host has, and fetch none"`
	UpdateCache     bool     `kk:"update_cache,alias=expire-cache" default:"no" doc:"read the lists of the repositories first"`
	LockTimeout     int      `kk:"lock_timeout" default:"30" doc:"seconds to wait while another dnf or yum runs"`
}

func dnfSpec() module.Spec {
	return module.Spec{
		Name: "dnf", Aliases: []string{"yum"},
		Summary: "Installs, upgrades and removes packages of Fedora, Red Hat and their kin, with dnf or yum.",
		Notes:   []string{"In check mode a package that is not there counts as a change, without asking whether a repository has it."},
		Examples: []string{
			"- name: Install a package from one repository\n  dnf:\n    name: kubelet-1.34.4\n    enablerepo: kubernetes\n    allow_downgrade: true",
		},
		Returns: append(packageReturns(), module.Return{Key: "results", Type: "list", Doc: "what dnf did: Installed: NAME, Removed: NAME"}),
		New:     func() module.Runner { return new(Dnf) },
	}
}

// Run implements module.Runner.
func (m *Dnf) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if len(m.Name) == 0 && !m.Autoremove && !m.UpdateCache {
		return module.Result{}, errors.New("one of the following is required: autoremove, name, update_cache")
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
	if !r.Failed && !r.Changed {
		r.Msg = "Nothing to do"
	}
	return r, nil
}

func (m *Dnf) params(s *hostscript.Script) {
	s.Set("enablerepo", strings.Join(m.EnableRepo, " ")).Set("disablerepo", strings.Join(m.DisableRepo, " "))
	s.Set("exclude", strings.Join(m.Exclude, " ")).Set("lock_timeout", strconv.Itoa(m.LockTimeout))
	if m.InstallRoot != "/" {
		s.Set("installroot", m.InstallRoot)
	}
	s.Flag("disable_gpg_check", m.DisableGPGCheck).Flag("allow_downgrade", m.AllowDowngrade)
	s.Flag("download_only", m.DownloadOnly).Flag("nobest", m.NoBest).Flag("allowerasing", m.AllowErasing)
	s.Set("conf_file", m.ConfFile).Set("releasever", m.ReleaseVer).Set("download_dir", m.DownloadDir).Set("disable_excludes", m.DisableExcludes)
	s.Set("enable_plugin", strings.Join(m.EnablePlugin, " ")).Set("disable_plugin", strings.Join(m.DisablePlugin, " "))
	s.Flag("skip_broken", m.SkipBroken).Flag("update_only", m.UpdateOnly).Flag("security", m.Security).Flag("bugfix", m.Bugfix)
	s.Flag("no_sslverify", !m.SSLVerify).Flag("no_weak_deps", !m.WeakDeps).Flag("cacheonly", m.CacheOnly)
	s.Flag("autoremove", m.Autoremove).Flag("update_cache", m.UpdateCache)
}

// dnfResults reads the lists at the end of dnf's output: a heading such as
// "Installed:", then names that are indented.
func dnfResults(stdout string) []any {
	out := []any{}
	heading := ""
	for _, line := range module.Lines(stdout) {
		name, headed := strings.CutSuffix(line, ":")
		switch {
		case headed && (name == "Installed" || name == "Removed" || name == "Upgraded" || name == "Downgraded"):
			heading = name
		case heading != "" && strings.HasPrefix(line, " "):
			for _, word := range strings.Fields(line) {
				out = append(out, heading+": "+word)
			}
		default:
			heading = ""
		}
	}
	return out
}
