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

// Package is the module package: the module of the host's package manager, with the
// arguments that playbooks pass to it.
type Package struct {
	Name        []string `kk:"name,alias=pkg" doc:"names of packages, as in the package manager of the host"`
	State       string   `kk:"state" default:"present" choices:"present,installed,absent,removed,latest" doc:"desired state; latest is the newest version in the repositories"`
	Use         string   `kk:"use" default:"auto" choices:"auto,apt,dnf,dnf5,yum,zypper,apk" doc:"package manager; auto uses the first one found on the host"`
	UpdateCache *bool    `kk:"update_cache,alias=update-cache" doc:"update the package lists first. Default: yes if cache_valid_time is set"`

	AllowDowngrade  bool `kk:"allow_downgrade,alias=allow_downgrades" default:"no" doc:"allow downgrades"`
	Autoremove      bool `kk:"autoremove" default:"no" doc:"remove dependencies that are no longer needed"`
	UpdateOnly      bool `kk:"update_only,alias=only_upgrade" default:"no" doc:"with state: latest, do not install packages that are missing"`
	LockTimeout     int  `kk:"lock_timeout" default:"60" doc:"seconds to wait for the lock of the package manager"`
	DisableGPGCheck bool `kk:"disable_gpg_check,alias=allow_unauthenticated" default:"no" doc:"install packages even without a valid signature"`

	CacheValidTime    int    `kk:"cache_valid_time" default:"0" doc:"apt: seconds for which the package lists count as up to date"`
	DefaultRelease    string `kk:"default_release,alias=default-release" doc:"apt: release to install packages from"`
	InstallRecommends *bool  `kk:"install_recommends,alias=install-recommends" doc:"apt: install recommended packages too. Default: as configured on the host"`
	DpkgOptions       string `kk:"dpkg_options" default:"force-confdef,force-confold" doc:"apt: dpkg options, without dashes, separated by commas"`
	Purge             bool   `kk:"purge" default:"no" doc:"apt: with state: absent, remove config files too"`
	Force             bool   `kk:"force" default:"no" doc:"apt: allow downgrades, and changes of essential and held packages"`
	ForceAptGet       bool   `kk:"force_apt_get" default:"no" doc:"without effect: apt-get is always used"`
	ChangeHeld        bool   `kk:"allow_change_held_packages" default:"no" doc:"apt: allow changes of held packages"`
	PolicyRCD         *int   `kk:"policy_rc_d" doc:"apt: exit status of policy-rc.d while packages are configured"`

	EnableRepo   []string `kk:"enablerepo" doc:"dnf: repositories to enable in addition"`
	DisableRepo  []string `kk:"disablerepo" doc:"dnf: repositories to disable"`
	Exclude      []string `kk:"exclude" doc:"dnf: packages to exclude"`
	NoBest       bool     `kk:"nobest" default:"no" doc:"dnf: allow an older version if the newest cannot be installed"`
	AllowErasing bool     `kk:"allowerasing" default:"no" doc:"dnf: allow conflicting packages to be removed"`
	SkipBroken   bool     `kk:"skip_broken" default:"no" doc:"dnf: skip packages that cannot be installed"`
	ReleaseVer   string   `kk:"releasever" doc:"dnf: release to install packages for. Default: that of the host"`
	WeakDeps     bool     `kk:"install_weak_deps" default:"yes" doc:"dnf: install recommended packages too"`

	Recommends bool `kk:"disable_recommends" default:"yes" doc:"zypper: do not install recommended packages"`
}

func packageSpec() module.Spec {
	return module.Spec{
		Name:    "package",
		Summary: "Installs and removes packages with the package manager of the host.",
		Notes: []string{
			"In check mode the package manager predicts the changes.",
			"Arguments of one package manager have no effect with another.",
		},
		Examples: []string{
			"- name: Install dependencies\n  package:\n    name: [conntrack, socat]\n    state: present",
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
	z := &Zypper{Type: "package", Recommends: m.Recommends, OldPackage: m.AllowDowngrade,
		DisableGPGCheck: m.DisableGPGCheck}
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
