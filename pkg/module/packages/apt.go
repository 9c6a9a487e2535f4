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
	Name              []string `kk:"name,alias=package|pkg" doc:"packages; NAME=VERSION asks for a version, which may have * in it"`
	State             string   `kk:"state" default:"present" choices:"present,installed,absent,removed,latest,build-dep,fixed" doc:"installed, not installed, as new as the repositories have it, its build dependencies installed, or broken packages repaired"`
	UpdateCache       *bool    `kk:"update_cache,alias=update-cache" doc:"read the lists of the repositories first. Default: yes if cache_valid_time is given"`
	CacheValidTime    int      `kk:"cache_valid_time" default:"0" doc:"seconds for which lists that were read are new enough"`
	UpdateRetries     int      `kk:"update_cache_retries" default:"5" doc:"times to read the lists again if that fails"`
	UpdateMaxDelay    int      `kk:"update_cache_retry_max_delay" default:"12" doc:"seconds between two tries, at most"`
	Clean             bool     `kk:"clean" default:"no" doc:"remove the package files that were fetched"`
	Autoclean         bool     `kk:"autoclean" default:"no" doc:"remove those that can be fetched no more"`
	FailOnAutoremove  bool     `kk:"fail_on_autoremove" default:"no" doc:"fail if packages would have to be removed"`
	ForceAptGet       bool     `kk:"force_apt_get" default:"no" doc:"without effect: apt-get is always used"`
	Purge             bool     `kk:"purge" default:"no" doc:"with state: absent, remove settings too"`
	Autoremove        bool     `kk:"autoremove" default:"no" doc:"remove packages that nothing needs any more"`
	Upgrade           string   `kk:"upgrade" default:"no" choices:"no,yes,safe,full,dist" doc:"upgrade all packages; full and dist may remove some"`
	AllowDowngrade    bool     `kk:"allow_downgrade,alias=allow-downgrade|allow_downgrades|allow-downgrades" default:"no" doc:"allow an older version to replace a newer one"`
	Unauthenticated   bool     `kk:"allow_unauthenticated,alias=allow-unauthenticated" default:"no" doc:"install packages without a valid signature"`
	ChangeHeld        bool     `kk:"allow_change_held_packages" default:"no" doc:"allow changes of packages that are on hold"`
	DpkgOptions       string   `kk:"dpkg_options" default:"force-confdef,force-confold" doc:"options of dpkg, without dashes, separated by commas"`
	Deb               string   `kk:"deb,path" doc:"package file on the host to install, or a URL that the host fetches it from, in each run"`
	DefaultRelease    string   `kk:"default_release,alias=default-release" doc:"release that packages come from"`
	InstallRecommends *bool    `kk:"install_recommends,alias=install-recommends" doc:"install recommended packages too. Default: as the host is set up"`
	OnlyUpgrade       bool     `kk:"only_upgrade" default:"no" doc:"with state: latest, leave alone what is not installed"`
	Force             bool     `kk:"force" default:"no" doc:"allow downgrades, removal of essential packages and changes of held ones"`
	LockTimeout       int      `kk:"lock_timeout" default:"60" doc:"seconds to wait while another process holds the lock of dpkg or apt"`
	PolicyRCD         *int     `kk:"policy_rc_d" doc:"exit status of a policy-rc.d that is in place while packages are configured: 101 keeps services from being started"`
}

func aptSpec() module.Spec {
	return module.Spec{
		Name:    "apt",
		Summary: "Installs, upgrades and removes packages of Debian and its kin.",
		Notes: []string{
			"In check mode apt-get is asked what it would do, with the lists of repositories that the host has; update_cache does not read them.",
			"clean is a change if there are such files.",
		},
		Examples: []string{
			"- name: Install two packages\n  apt:\n    name: [conntrack, ipset]\n    update_cache: true\n    cache_valid_time: 3600",
			"- name: Install one version\n  apt:\n    name: containerd=1.6.*\n    allow_downgrade: true",
		},
		Returns: append(packageReturns(),
			module.Return{Key: "cache_updated", Type: "bool", Doc: "whether the lists of the repositories were read and had changed"},
			module.Return{Key: "cache_update_time", Type: "int", Doc: "when they were last read, in seconds since 1970"},
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
