package packages

import (
	"context"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
)

// Apt is the module apt.
type Apt struct {
	Name              []string `kk:"name,alias=package|pkg" doc:"names of packages; NAME=VERSION selects a version, which may contain *"`
	State             string   `kk:"state" default:"present" choices:"present,installed,absent,removed,latest,build-dep,fixed" doc:"desired state; latest is the newest version in the repositories, build-dep installs build dependencies, fixed repairs broken packages"`
	UpdateCache       *bool    `kk:"update_cache,alias=update-cache" doc:"update the package lists first. Default: yes if cache_valid_time is set"`
	CacheValidTime    int      `kk:"cache_valid_time" default:"0" doc:"seconds for which the package lists count as up to date"`
	UpdateRetries     int      `kk:"update_cache_retries" default:"5" doc:"retries if updating the package lists fails"`
	UpdateMaxDelay    int      `kk:"update_cache_retry_max_delay" default:"12" doc:"maximum delay between retries, in seconds"`
	Clean             bool     `kk:"clean" default:"no" doc:"remove downloaded package files"`
	Autoclean         bool     `kk:"autoclean" default:"no" doc:"remove downloaded package files that are no longer available"`
	FailOnAutoremove  bool     `kk:"fail_on_autoremove" default:"no" doc:"fail if packages would be removed"`
	ForceAptGet       bool     `kk:"force_apt_get" default:"no" doc:"without effect: apt-get is always used"`
	Purge             bool     `kk:"purge" default:"no" doc:"with state: absent, remove config files too"`
	Autoremove        bool     `kk:"autoremove" default:"no" doc:"remove dependencies that are no longer needed"`
	Upgrade           string   `kk:"upgrade" default:"no" choices:"no,yes,safe,full,dist" doc:"upgrade all packages; full and dist may remove packages"`
	AllowDowngrade    bool     `kk:"allow_downgrade,alias=allow-downgrade|allow_downgrades|allow-downgrades" default:"no" doc:"allow downgrades"`
	Unauthenticated   bool     `kk:"allow_unauthenticated,alias=allow-unauthenticated" default:"no" doc:"install packages even without a valid signature"`
	ChangeHeld        bool     `kk:"allow_change_held_packages" default:"no" doc:"allow changes of held packages"`
	DpkgOptions       string   `kk:"dpkg_options" default:"force-confdef,force-confold" doc:"dpkg options, without dashes, separated by commas"`
	Deb               string   `kk:"deb,path" doc:"package file on the host to install, or a URL from which the host downloads it in each run"`
	DefaultRelease    string   `kk:"default_release,alias=default-release" doc:"release to install packages from"`
	InstallRecommends *bool    `kk:"install_recommends,alias=install-recommends" doc:"install recommended packages too. Default: as configured on the host"`
	OnlyUpgrade       bool     `kk:"only_upgrade" default:"no" doc:"with state: latest, do not install packages that are missing"`
	Force             bool     `kk:"force" default:"no" doc:"allow downgrades, and changes of essential and held packages"`
	LockTimeout       int      `kk:"lock_timeout" default:"60" doc:"seconds to wait for the lock of dpkg or apt"`
	PolicyRCD         *int     `kk:"policy_rc_d" doc:"exit status of policy-rc.d while packages are configured: 101 prevents services from starting"`
}

func aptSpec() module.Spec {
	return module.Spec{
		Name:    "apt",
		Summary: "Installs, upgrades and removes packages on Debian and its derivatives.",
		Notes: []string{
			"In check mode apt-get predicts the changes from the existing package lists; update_cache does not update them.",
			"clean is a change if there are files to remove.",
		},
		Examples: []string{
			"- name: Install two packages\n  apt:\n    name: [conntrack, ipset]\n    update_cache: true\n" +
				"    cache_valid_time: 3600",
			"- name: Install one version\n  apt:\n    name: containerd=1.6.*\n    allow_downgrade: true",
		},
		Returns: append(packageReturns(),
			module.Return{Key: "cache_updated", Type: "bool", Doc: "whether the package lists were updated and had changed"},
			module.Return{Key: "cache_update_time", Type: "int",
				Doc: "time of the last update of the package lists, in seconds since 1970"},
		),
		New: func() module.Runner { return new(Apt) },
	}
}

// Rules implements schema.Ruled.
func (*Apt) Rules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("deb", "name"),
		schema.AddressOr("a path", "deb", "http", "https", "ftp", "ftps", "file"),
		schema.AtLeastOne("name", "deb", "upgrade", "autoremove", "clean", "autoclean", "update_cache", "cache_valid_time").
			Unless("state", "fixed").
			Says("one of the following is required: autoremove, deb, name, update_cache, upgrade"),
		packageNames(),
		schema.Between("cache_valid_time", 0, schema.NoLimit),
		schema.Between("lock_timeout", 0, schema.NoLimit),
		schema.Between("update_cache_retries", 0, schema.NoLimit),
		schema.Between("update_cache_retry_max_delay", 0, schema.NoLimit),
	}
}

// Run implements module.Runner.
func (m *Apt) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	s := hostscript.New(aptScript, `apt_main "$@"`)
	m.params(s)
	return runPackages(ctx, c, s, m.State, m.Name)
}

func (m *Apt) updates() bool {
	if m.UpdateCache != nil {
		return *m.UpdateCache
	}
	return m.CacheValidTime > 0
}

func (m *Apt) params(s *hostscript.Script) {
	s.Args(m).Flag("update_cache", m.updates()).Set("dpkg_options", strings.ReplaceAll(m.DpkgOptions, ",", " "))
	if m.Upgrade == "no" {
		s.Set("upgrade", "")
	}
}
