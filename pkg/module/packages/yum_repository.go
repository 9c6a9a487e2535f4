package packages

import (
	"context"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"sort"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// YumRepository is the module yum_repository. Fields with a tag ini are
// options of the repository, as in yum.conf(5) and dnf.conf(5).
type YumRepository struct {
	Name         string         `kk:"name,required" doc:"ID of the repository"`
	Description  string         `kk:"description" ini:"name" doc:"description of the repository. Needed with state: present"`
	File         string         `kk:"file" doc:"name of the file, without .repo. Default: the ID"`
	Dir          string         `kk:"reposdir,path" default:"/etc/yum.repos.d" doc:"folder of the file"`
	State        string         `kk:"state" default:"present" choices:"absent,present" doc:"whether the repository is in the file"`
	BaseURL      []string       `kk:"baseurl" ini:"baseurl" doc:"URLs of the repository. One of baseurl, metalink and mirrorlist is needed"`
	Metalink     string         `kk:"metalink" ini:"metalink" doc:"URL of a metalink of mirrors"`
	Mirrorlist   string         `kk:"mirrorlist" ini:"mirrorlist" doc:"URL of a mirror list"`
	Enabled      *bool          `kk:"enabled" ini:"enabled" doc:"whether the repository is enabled"`
	GPGCheck     *bool          `kk:"gpgcheck" ini:"gpgcheck" doc:"verify the signatures of packages"`
	GPGKey       []string       `kk:"gpgkey" ini:"gpgkey" doc:"URLs of the signing keys"`
	GPGCAKey     string         `kk:"gpgcakey" ini:"gpgcakey" doc:"URL of the CA key"`
	RepoGPGCheck *bool          `kk:"repo_gpgcheck" ini:"repo_gpgcheck" doc:"verify the signature of the repository metadata"`
	Exclude      []string       `kk:"exclude,alias=excludepkgs" ini:"exclude" doc:"packages to ignore in the repository"`
	IncludePkgs  []string       `kk:"includepkgs" ini:"includepkgs" doc:"packages to use from the repository; all others are ignored"`
	Include      string         `kk:"include" ini:"include" doc:"URL of further config to include"`
	Priority     string         `kk:"priority" ini:"priority" doc:"1 to 99; the lowest wins"`
	Cost         string         `kk:"cost" ini:"cost" doc:"relative cost of access, compared to other repositories"`
	Hotfixes     *bool          `kk:"module_hotfixes" ini:"module_hotfixes" doc:"make packages available even if a module would hide them"`
	Skip         *bool          `kk:"skip_if_unavailable" ini:"skip_if_unavailable" doc:"continue without the repository if it is unreachable"`
	Proxy        string         `kk:"proxy" ini:"proxy" doc:"URL of a proxy, or _none_"`
	ProxyUser    string         `kk:"proxy_username" ini:"proxy_username" doc:"user name for the proxy"`
	ProxyPass    *redact.Secret `kk:"proxy_password" ini:"proxy_password" doc:"password for the proxy"`
	User         string         `kk:"username" ini:"username" doc:"user name for the repository"`
	Password     *redact.Secret `kk:"password" ini:"password" doc:"password for the repository"`
	SSLVerify    *bool          `kk:"sslverify,alias=validate_certs" ini:"sslverify" doc:"verify the TLS certificate of the server"`
	SSLCACert    string         `kk:"sslcacert,alias=ca_cert" ini:"sslcacert" doc:"file or folder with CA certificates"`
	SSLCert      string         `kk:"sslclientcert,alias=client_cert" ini:"sslclientcert" doc:"file with the client certificate"`
	SSLKey       string         `kk:"sslclientkey,alias=client_key" ini:"sslclientkey" doc:"file with its key"`
	SSLCheckPerm *bool          `kk:"ssl_check_cert_permissions" ini:"ssl_check_cert_permissions" doc:"check the permissions of the certificate"`
	Timeout      string         `kk:"timeout" ini:"timeout" doc:"connection timeout in seconds"`
	Retries      string         `kk:"retries" ini:"retries" doc:"number of retries"`
	Throttle     string         `kk:"throttle" ini:"throttle" doc:"maximum bandwidth in bytes per second"`
	Bandwidth    string         `kk:"bandwidth" ini:"bandwidth" doc:"available bandwidth in bytes per second"`
	KeepAlive    *bool          `kk:"keepalive" ini:"keepalive" doc:"keep connections open"`
	KeepCache    string         `kk:"keepcache" ini:"keepcache" choices:"0,1" doc:"keep downloaded packages after installation"`
	HTTPCaching  string         `kk:"http_caching" ini:"http_caching" choices:"all,packages,none" doc:"what HTTP caches may store"`
	IPResolve    string         `kk:"ip_resolve" ini:"ip_resolve" choices:"4,6,IPv4,IPv6,whatever" doc:"IP version to connect with"`
	Expire       string         `kk:"metadata_expire" ini:"metadata_expire" doc:"time after which metadata expires: seconds, 6h, or never"`
	ExpireFilter string         `kk:"metadata_expire_filter" ini:"metadata_expire_filter" choices:"never,read-only:past,read-only:present,read-only:future" doc:"commands that may use expired metadata"`
	MirrorExpire string         `kk:"mirrorlist_expire" ini:"mirrorlist_expire" doc:"seconds after which the mirror list expires"`
	Failover     string         `kk:"failovermethod" ini:"failovermethod" choices:"roundrobin,priority" doc:"order in which URLs are tried"`
	EnableGroups *bool          `kk:"enablegroups" ini:"enablegroups" doc:"whether package groups of the repository are enabled"`
	Async        *bool          `kk:"async" ini:"async" doc:"download in parallel with other repositories"`
	DeltaMeta    string         `kk:"deltarpm_metadata_percentage" ini:"deltarpm_metadata_percentage" doc:"maximum relative size of delta metadata, in percent"`
	Delta        string         `kk:"deltarpm_percentage" ini:"deltarpm_percentage" doc:"maximum relative size of delta packages, in percent"`
	Protect      *bool          `kk:"protect" ini:"protect" doc:"protect packages from being replaced by other repositories"`
	S3           *bool          `kk:"s3_enabled" ini:"s3_enabled" doc:"whether the repository is in S3"`
	RepoIDVars   string         `kk:"ui_repoid_vars" ini:"ui_repoid_vars" doc:"variables to append to the displayed ID"`
	module.FileAttrs
}

func yumRepositorySpec() module.Spec {
	return module.Spec{
		Name:    "yum_repository",
		Summary: "Manages a dnf or yum repository.",
		Notes: []string{
			"The repository gets exactly the options of the task. Other repositories in the file are kept; a file without " +
				"repositories is removed.",
			"Metadata is not updated: set `update_cache` on the task that installs packages.",
		},
		Examples: []string{
			"- name: Add the Kubernetes repository\n  yum_repository:\n    name: kubernetes\n    description: Kubernetes\n" +
				"    baseurl: https://pkgs.k8s.io/core:/stable:/v1.34/rpm/\n    gpgcheck: true\n" +
				"    gpgkey: https://pkgs.k8s.io/core:/stable:/v1.34/rpm/repodata/repomd.xml.key",
		},
		Returns: []module.Return{
			{Key: "repo", Type: "str", Doc: "the ID"},
			{Key: "state", Type: "str", Doc: "the argument"},
		},
		New: func() module.Runner { return new(YumRepository) },
	}
}

func isRepoName(name string) bool { return !strings.ContainsAny(name, "[]/\n\r\x00") }

// Rules implements schema.Ruled.
func (*YumRepository) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("name"),
		schema.Looks("the name of a repository or of its file", isRepoName, "name", "file"),
		schema.AtLeastOne("baseurl", "metalink", "mirrorlist").If("state", "present").
			Says("Parameter 'baseurl', 'metalink' or 'mirrorlist' is required."),
		schema.Needs("description").If("state", "present").Says("Parameter 'description' is required."),
	}
}

// Run implements module.Runner.
func (m *YumRepository) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	settings, err := m.settings()
	if err != nil {
		return module.Result{}, err
	}
	f, err := module.ReadText(ctx, c, path.Join(m.Dir, m.File+".repo"))
	if err != nil {
		return module.Result{}, err
	}
	f.Folder = true
	f.After = editSection(f.Before, m.Name, settings)
	f.Remove = m.State == "absent" && !strings.Contains("\n"+f.After, "\n[") && f.After != f.Before
	if f.Remove {
		f.After = ""
	}
	r := module.Result{Data: value.NewDict("repo", m.Name, "state", m.State)}
	attrs := m.FileAttrs
	if m.State == "absent" {
		attrs = module.FileAttrs{}
	}
	err = f.Save(ctx, c, attrs, &r)
	for i := range r.Diff {
		r.Diff[i].Before, r.Diff[i].After = masked(f.Before), masked(f.After)
	}
	return r, err
}

// masked is the text without passwords, for output.
func masked(text string) string {
	return iniPassword.ReplaceAllString(text, "${1}***")
}

var iniPassword = regexp.MustCompile(`(?m)^((?:proxy_)?password\s*=\s*).*$`)

// options are the lines of the repository; none with state: absent.
func (m *YumRepository) settings() ([]string, error) {
	if m.File == "" {
		m.File = m.Name
	}
	if m.State == "absent" {
		return nil, nil
	}
	return iniLines(reflect.ValueOf(m).Elem())
}

// iniLines are the given options, sorted.
func iniLines(v reflect.Value) ([]string, error) {
	var out []string
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("ini")
		if key == "" || v.Field(i).IsZero() {
			continue
		}
		text := ""
		switch f := v.Field(i).Interface().(type) {
		case string:
			text = f
		case *bool:
			text = map[bool]string{true: "1", false: "0"}[*f]
		case *redact.Secret:
			text = f.Reveal()
		case []string:
			text = strings.Join(f, " ")
			if key == "baseurl" || key == "gpgkey" {
				text = strings.Join(f, "\n\t")
			}
		}
		if text == "" {
			continue
		}
		if strings.ContainsAny(strings.ReplaceAll(text, "\n\t", ""), "\n\r\x00") {
			return nil, fmt.Errorf("value of %s must be one line", key)
		}
		out = append(out, key+" = "+text)
	}
	sort.Strings(out)
	return out, nil
}

// editSection replaces the lines of a section of an INI file, appends a new section, or
// removes it if there are no lines.
func editSection(text, name string, settings []string) string {
	var out []string
	mine, found := false, false
	for _, line := range module.Lines(text) {
		if title := strings.TrimSpace(line); strings.HasPrefix(title, "[") {
			mine = title == "["+name+"]"
			if mine && !found && len(settings) > 0 {
				out = append(out, section(name, settings)...)
			}
			found = found || mine
		}
		if !mine {
			out = append(out, line)
		}
	}
	if !found && len(settings) > 0 {
		if n := len(out); n > 0 && out[n-1] != "" {
			out = append(out, "")
		}
		out = append(out, section(name, settings)...)
	}
	if !found && len(settings) == 0 {
		return text
	}
	return module.JoinLines(out)
}

func section(name string, settings []string) []string {
	out := append([]string{"[" + name + "]"}, strings.Split(strings.Join(settings, "\n"), "\n")...)
	return append(out, "")
}
