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
// settings of the repository, as yum.conf(5) and dnf.conf(5) know them.
type YumRepository struct {
	Name         string         `kk:"name,required" doc:"ID of the repository"`
	Description  string         `kk:"description" ini:"name" doc:"its name for people. Needed with state: present"`
	File         string         `kk:"file" doc:"name of the file without .repo. Default: the ID"`
	Dir          string         `kk:"reposdir,path" default:"/etc/yum.repos.d" doc:"folder of the file"`
	State        string         `kk:"state" default:"present" choices:"absent,present" doc:"whether the repository is in the file"`
	BaseURL      []string       `kk:"baseurl" ini:"baseurl" doc:"where it is. One of baseurl, metalink and mirrorlist is needed"`
	Metalink     string         `kk:"metalink" ini:"metalink" doc:"URL of a metalink of mirrors"`
	Mirrorlist   string         `kk:"mirrorlist" ini:"mirrorlist" doc:"URL of a list of mirrors"`
	Enabled      *bool          `kk:"enabled" ini:"enabled" doc:"whether it is used"`
	GPGCheck     *bool          `kk:"gpgcheck" ini:"gpgcheck" doc:"check the signatures of packages"`
	GPGKey       []string       `kk:"gpgkey" ini:"gpgkey" doc:"URLs of its keys"`
	GPGCAKey     string         `kk:"gpgcakey" ini:"gpgcakey" doc:"URL of the key of its authority"`
	RepoGPGCheck *bool          `kk:"repo_gpgcheck" ini:"repo_gpgcheck" doc:"check the signature of the lists"`
	Exclude      []string       `kk:"exclude,alias=excludepkgs" ini:"exclude" doc:"packages that are not taken from it"`
	IncludePkgs  []string       `kk:"includepkgs" ini:"includepkgs" doc:"the only packages that are taken from it"`
	Include      string         `kk:"include" ini:"include" doc:"URL of further settings"`
	Priority     string         `kk:"priority" ini:"priority" doc:"1 to 99; the lowest wins"`
	Cost         string         `kk:"cost" ini:"cost" doc:"what access costs, beside others"`
	Hotfixes     *bool          `kk:"module_hotfixes" ini:"module_hotfixes" doc:"its packages are seen beside modules"`
	Skip         *bool          `kk:"skip_if_unavailable" ini:"skip_if_unavailable" doc:"go on without it if it cannot be reached"`
	Proxy        string         `kk:"proxy" ini:"proxy" doc:"URL of a proxy, or _none_"`
	ProxyUser    string         `kk:"proxy_username" ini:"proxy_username" doc:"user at the proxy"`
	ProxyPass    *redact.Secret `kk:"proxy_password" ini:"proxy_password" doc:"password at the proxy"`
	User         string         `kk:"username" ini:"username" doc:"user at the repository"`
	Password     *redact.Secret `kk:"password" ini:"password" doc:"password at the repository"`
	SSLVerify    *bool          `kk:"sslverify,alias=validate_certs" ini:"sslverify" doc:"check the certificate of the server"`
	SSLCACert    string         `kk:"sslcacert,alias=ca_cert" ini:"sslcacert" doc:"file or folder of authorities for that"`
	SSLCert      string         `kk:"sslclientcert,alias=client_cert" ini:"sslclientcert" doc:"file of the client's certificate"`
	SSLKey       string         `kk:"sslclientkey,alias=client_key" ini:"sslclientkey" doc:"file of its key"`
	SSLCheckPerm *bool          `kk:"ssl_check_cert_permissions" ini:"ssl_check_cert_permissions" doc:"check who may read the certificate"`
	Timeout      string         `kk:"timeout" ini:"timeout" doc:"seconds to wait for a connection"`
	Retries      string         `kk:"retries" ini:"retries" doc:"times to try again"`
	Throttle     string         `kk:"throttle" ini:"throttle" doc:"bytes in a second at most"`
	Bandwidth    string         `kk:"bandwidth" ini:"bandwidth" doc:"bytes in a second that there are"`
	KeepAlive    *bool          `kk:"keepalive" ini:"keepalive" doc:"keep connections open"`
	KeepCache    string         `kk:"keepcache" ini:"keepcache" choices:"0,1" doc:"keep packages after they were installed"`
	HTTPCaching  string         `kk:"http_caching" ini:"http_caching" choices:"all,packages,none" doc:"what caches on the way may keep"`
	IPResolve    string         `kk:"ip_resolve" ini:"ip_resolve" choices:"4,6,IPv4,IPv6,whatever" doc:"which addresses are used"`
	Expire       string         `kk:"metadata_expire" ini:"metadata_expire" doc:"seconds, or 6h, or never, for which lists are new enough"`
	ExpireFilter string         `kk:"metadata_expire_filter" ini:"metadata_expire_filter" choices:"never,read-only:past,read-only:present,read-only:future" doc:"commands for which older lists do"`
	MirrorExpire string         `kk:"mirrorlist_expire" ini:"mirrorlist_expire" doc:"seconds for which the list of mirrors is new enough"`
	Failover     string         `kk:"failovermethod" ini:"failovermethod" choices:"roundrobin,priority" doc:"order of its URLs"`
	EnableGroups *bool          `kk:"enablegroups" ini:"enablegroups" doc:"whether its groups of packages are used"`
	Async        *bool          `kk:"async" ini:"async" doc:"fetch from it beside others"`
	DeltaMeta    string         `kk:"deltarpm_metadata_percentage" ini:"deltarpm_metadata_percentage" doc:"size of delta lists, in percent, up to which they are worth it"`
	Delta        string         `kk:"deltarpm_percentage" ini:"deltarpm_percentage" doc:"size of delta packages, in percent, up to which they are worth it"`
	Protect      *bool          `kk:"protect" ini:"protect" doc:"its packages are not replaced by others'"`
	S3           *bool          `kk:"s3_enabled" ini:"s3_enabled" doc:"it is in S3"`
	RepoIDVars   string         `kk:"ui_repoid_vars" ini:"ui_repoid_vars" doc:"variables that its ID is shown with"`
	module.FileAttrs
}

func yumRepositorySpec() module.Spec {
	return module.Spec{
		Name:    "yum_repository",
		Summary: "Keeps a repository of dnf or yum.",
		Notes: []string{
			"A repository gets exactly the settings of the task. Other repositories of the file stay; a file without repositories is removed.",
			"No list is read: give `update_cache` to the task that installs.",
		},
		Examples: []string{
			"- name: Packages of Kubernetes\n  yum_repository:\n    name: kubernetes\n    description: Kubernetes\n    baseurl: https://pkgs.k8s.io/core:/stable:/v1.34/rpm/\n    gpgcheck: true\n    gpgkey: https://pkgs.k8s.io/core:/stable:/v1.34/rpm/repodata/repomd.xml.key",
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

// masked is the text as it may be shown: without passwords.
func masked(text string) string {
	return iniPassword.ReplaceAllString(text, "${1}***")
}

var iniPassword = regexp.MustCompile(`(?m)^((?:proxy_)?password\s*=\s*).*$`)

// settings are the lines of the repository; none if it is to be absent.
func (m *YumRepository) settings() ([]string, error) {
	if m.File == "" {
		m.File = m.Name
	}
	if m.State == "absent" {
		return nil, nil
	}
	return iniLines(reflect.ValueOf(m).Elem())
}

// iniLines are the settings that were given, sorted.
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

// editSection makes the section of an INI file have the lines, in its place or
// at the end, or removes it if there are none.
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
