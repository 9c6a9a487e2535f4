package packages

import (
	"context"
	_ "embed"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
)

//go:embed package.sh
var packageScript string

// Package is the module package: the module of the host's own package manager,
// with the arguments that playbooks pass through it.
type Package struct {
	Name        []string `kk:"name,alias=pkg" doc:"packages, as the host's package manager names them"`
	State       string   `kk:"state" default:"present" choices:"present,installed,absent,removed,latest" doc:"installed, not installed, or as new as the repositories have it"`
	Use         string   `kk:"use" default:"auto" choices:"auto,apt,dnf,dnf5,yum,zypper,apk" doc:"the package manager; auto is the first that the host has"`
	UpdateCache *bool    `kk:"update_cache,alias=update-cache" doc:"read the lists of the repositories first. Default: yes if cache_valid_time is given"`

	AllowDowngrade  bool `kk:"allow_downgrade,alias=allow_downgrades" default:"no" doc:"allow an older version to replace a newer one"`
	Autoremove      bool `kk:"autoremove" default:"no" doc:"remove packages that nothing needs any more"`
	UpdateOnly      bool `kk:"update_only,alias=only_upgrade" default:"no" doc:"with state: latest, leave alone what is not installed"`
	LockTimeout     int  `kk:"lock_timeout" default:"60" doc:"seconds to wait while another process holds the package manager's lock"`
	DisableGPGCheck bool `kk:"disable_gpg_check,alias=allow_unauthenticated" default:"no" doc:"install packages without a valid signature"`

	CacheValidTime    int    `kk:"cache_valid_time" default:"0" doc:"apt: seconds for which lists that were read are new enough"`
	DefaultRelease    string `kk:"default_release,alias=default-release" doc:"apt: release that packages come from"`
	InstallRecommends *bool  `kk:"install_recommends,alias=install-recommends" doc:"apt: install recommended packages too. Default: as the host is set up"`
	DpkgOptions       string `kk:"dpkg_options" default:"force-confdef,force-confold" doc:"apt: options of dpkg, without dashes, separated by commas"`
	Purge             bool   `kk:"purge" default:"no" doc:"apt: with state: absent, remove settings too"`
	Force             bool   `kk:"force" default:"no" doc:"apt: allow downgrades, removal of essential packages and changes of held ones"`
	ForceAptGet       bool   `kk:"force_apt_get" default:"no" doc:"without effect: apt-get is always used"`
	ChangeHeld        bool   `kk:"allow_change_held_packages" default:"no" doc:"apt: allow changes of packages that are on hold"`
	PolicyRCD         *int   `kk:"policy_rc_d" doc:"apt: exit status of a policy-rc.d that is in place while packages are configured"`

	EnableRepo   []string `kk:"enablerepo" doc:"dnf: repositories to use beside those that are on"`
	DisableRepo  []string `kk:"disablerepo" doc:"dnf: repositories not to use"`
	Exclude      []string `kk:"exclude" doc:"dnf: packages to leave as they are"`
	NoBest       bool     `kk:"nobest" default:"no" doc:"dnf: take an older version if the newest cannot be installed"`
	AllowErasing bool     `kk:"allowerasing" default:"no" doc:"dnf: allow packages to be removed that are in the way"`
	SkipBroken   bool     `kk:"skip_broken" default:"no" doc:"dnf: leave out packages that cannot be installed"`
	ReleaseVer   string   `kk:"releasever" doc:"dnf: release that packages are for. Default: the host's"`
	WeakDeps     bool     `kk:"install_weak_deps" default:"yes" doc:"dnf: install recommended packages too"`

	Recommends bool `kk:"disable_recommends" default:"yes" doc:"zypper: leave recommended packages out"`
}

func packageSpec() module.Spec {
	return module.Spec{
		Name:    "package",
		Summary: "Installs and removes packages, with the package manager that the host has.",
		Notes: []string{
			"In check mode the package manager is asked what it would do.",
			"An argument that belongs to one package manager is without effect on a host that has another.",
		},
		Examples: []string{
			"- name: Install what the role needs\n  package:\n    name: [conntrack, socat]\n    state: present",
		},
		Returns: packageReturns(),
		New:     func() module.Runner { return new(Package) },
	}
}

// Rules implements schema.Ruled.
func (*Package) Rules() schema.Rules {
	return schema.Rules{
		schema.AtLeastOne("name", "autoremove", "update_cache", "cache_valid_time").
			Says("one of the following is required: autoremove, deb, name, update_cache, upgrade"),
		packageNames(),
		schema.Between("cache_valid_time", 0, schema.NoLimit),
		schema.Between("lock_timeout", 0, schema.NoLimit),
	}
}

// Run implements module.Runner. Which manager the host has shows only there,
// so the script is given what each would be told.
func (m *Package) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	apt := m.apt()
	s := hostscript.New(aptScript, rpmScript, zypperScript, apkScript, packageScript, `package_main "$@"`)
	m.dnf().params(s)
	m.zypper().params(s)
	s.Args(m.apk())
	apt.params(s)
	s.Set("use", m.Use)
	return runPackages(ctx, c, s, m.State, m.Name)
}

func (m *Package) apt() *Apt {
	return &Apt{
		Name: m.Name, State: m.State, UpdateCache: m.UpdateCache, CacheValidTime: m.CacheValidTime,
		UpdateRetries: 5, UpdateMaxDelay: 12, Purge: m.Purge, Autoremove: m.Autoremove, Upgrade: "no",
		AllowDowngrade: m.AllowDowngrade, Unauthenticated: m.DisableGPGCheck, ChangeHeld: m.ChangeHeld,
		DpkgOptions: m.DpkgOptions, DefaultRelease: m.DefaultRelease, InstallRecommends: m.InstallRecommends,
		OnlyUpgrade: m.UpdateOnly, Force: m.Force, LockTimeout: m.LockTimeout, PolicyRCD: m.PolicyRCD,
	}
}

func (m *Package) zypper() *Zypper {
	z := &Zypper{Type: "package", Recommends: m.Recommends, OldPackage: m.AllowDowngrade, DisableGPGCheck: m.DisableGPGCheck}
	z.UpdateCache = m.UpdateCache != nil && *m.UpdateCache
	return z
}

func (m *Package) apk() *Apk {
	return &Apk{UpdateCache: m.UpdateCache != nil && *m.UpdateCache, World: "/etc/apk/world"}
}

func (m *Package) dnf() *Dnf {
	return &Dnf{
		EnableRepo: m.EnableRepo, DisableRepo: m.DisableRepo, DisableGPGCheck: m.DisableGPGCheck, Exclude: m.Exclude,
		AllowDowngrade: m.AllowDowngrade, NoBest: m.NoBest, AllowErasing: m.AllowErasing, InstallRoot: "/",
		Autoremove: m.Autoremove, ReleaseVer: m.ReleaseVer, SkipBroken: m.SkipBroken, UpdateOnly: m.UpdateOnly,
		SSLVerify: true, ValidateCerts: true, WeakDeps: m.WeakDeps, LockTimeout: m.LockTimeout,
	}
}
