package kube

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed helm.sh
var helmScript string

// Helm is the module helm.
type Helm struct {
	Name            string      `kk:"name,required,alias=release_name" doc:"name of the release"`
	Namespace       string      `kk:"namespace,alias=release_namespace" default:"default" doc:"namespace of the release"`
	State           string      `kk:"state,alias=release_state" default:"present" choices:"present,absent" doc:"whether the release should be installed"`
	CreateNamespace bool        `kk:"create_namespace" default:"no" doc:"create the namespace if it does not exist"`
	Chart           string      `kk:"chart,alias=chart_ref" doc:"chart: a .tgz or a folder on the control node, searched for in files/ of the role; or a URL, an oci:// reference, a chart in a repository (REPO/NAME), or the name of a chart in repo_url"`
	Version         string      `kk:"version,alias=chart_version" doc:"version of the chart. Default: the newest; a file has its own"`
	RepoURL         string      `kk:"repo_url,alias=chart_repo_url" doc:"URL of the chart repository"`
	Values          *value.Dict `kk:"values,alias=release_values" doc:"chart values; they override those of the chart and of values_files"`
	ValuesFiles     []string    `kk:"values_files,file=files" doc:"YAML files with values on the control node, searched for in files/ of the role; later files override earlier ones"`
	SetValues       []setValue  `kk:"set_values" doc:"single values in the form of helm's --set; they override all others. They appear on the command line of helm, which other users of the host can see: use values for secrets"`
	Reset           bool        `kk:"reset_values" default:"yes" doc:"use the values of the task only, not those of previous upgrades"`
	Reuse           bool        `kk:"reuse_values" default:"no" doc:"merge the values of the task over those of the last upgrade; needs reset_values: no"`
	ResetReuse      bool        `kk:"reset_then_reuse_values" default:"no" doc:"like reuse_values, but on top of the defaults of the new chart; needs reset_values: no"`
	UpdateRepos     bool        `kk:"update_repo_cache" default:"no" doc:"update the repository indexes of helm on the host first; not in check mode"`
	DependencyUp    bool        `kk:"dependency_update,alias=dep_up" default:"no" doc:"fetch the dependencies of a chart that is a folder, in the copy on the host"`
	PostRenderer    string      `kk:"post_renderer" doc:"command on the host to pipe the manifests through: a name or a path"`
	Replace         bool        `kk:"replace" default:"no" doc:"install only: reuse the name of a removed release whose history was kept; an existing release that would change is an error"`
	Purge           bool        `kk:"purge" default:"yes" doc:"with state: absent, also remove the history of the release"`
	Wait            bool        `kk:"wait" default:"no" doc:"wait until all objects of the chart are ready; with state: absent, until they are deleted"`
	Timeout         string      `kk:"timeout,alias=wait_timeout" default:"5m" doc:"timeout of a single helm operation: seconds, or with units, such as 5m30s"`
	Atomic          bool        `kk:"atomic" default:"no" doc:"roll back a failed change; implies wait"`
	SkipCRDs        bool        `kk:"skip_crds" default:"no" doc:"do not install the CRDs in crds/ of the chart"`
	Helm            string      `kk:"binary,alias=binary_path" default:"helm" doc:"name or path of the command on the host"`
	Kubeconfig      string      `kk:"kubeconfig,path" doc:"path of the kubeconfig on the host. Default: KUBECONFIG in the environment of the task, otherwise ~/.kube/config"`
	Context         string      `kk:"context,alias=kube_context" doc:"context of the kubeconfig to use. Default: its current context"`
	HistoryMax      *int        `kk:"history_max" doc:"maximum number of revisions to keep; 0 for all. Default: that of helm, 10"`
	Force           bool        `kk:"force" default:"no" doc:"replace objects that cannot be updated in place"`
	NoHooks         bool        `kk:"disable_hook" default:"no" doc:"do not run hooks of the chart"`

	Host     string        `kk:"host" doc:"URL of the API server. Default: from the kubeconfig, which is optional if this is set"`
	Token    redact.Secret `kk:"api_key" doc:"bearer token to authenticate with, instead of the credentials in the kubeconfig"`
	Validate bool          `kk:"validate_certs,alias=verify_ssl" default:"yes" doc:"verify the TLS certificate of the server, unless the kubeconfig disables it"`
	CA       string        `kk:"ca_cert,path,alias=ssl_ca_cert" doc:"file on the host with CA certificates"`
}

// setValue is one entry of set_values.
type setValue struct {
	Value string `kk:"value,required" doc:"KEY=VALUE, in helm's syntax: a.b[0]=c"`
	Type  string `kk:"value_type" default:"raw" choices:"raw,string,json,file" doc:"raw guesses the type of the value; file is a file on the control node, searched for in files/ of the role, whose content is the value"`
}

func helmSpec() module.Spec {
	return module.Spec{
		Name: "helm", Collection: "kubernetes.core", Former: "community.kubernetes", Groups: []string{"helm"},
		Summary: "Installs, upgrades and removes releases of Helm charts.",
		Notes: []string{
			"It runs helm on the host. Charts and values files on the control node are copied to a temporary folder on the " +
				"host, which only the user can read and which is removed afterwards.",
			"A release is upgraded if its chart, values, manifest or hooks would change, or if its last change failed. For " +
				"the comparison the chart is rendered against the cluster; a chart that renders random content is upgraded in " +
				"each run.",
			"An interrupted change is recovered first: a pending installation is uninstalled, a pending upgrade is rolled " +
				"back to the last deployed revision. So do not run helm for the same release elsewhere at the same time.",
			"Helm does not update existing CRDs from crds/.",
			"The data of Secrets is hidden in diffs.",
		},
		Examples: []string{
			"- name: Install flannel\n  helm:\n    name: flannel\n    namespace: kube-flannel\n    create_namespace: true\n" +
				"    chart: /var/cache/charts/flannel.tgz\n    values:\n      podCidr: 10.233.64.0/18\n    wait: true\n" +
				"    kubeconfig: /etc/kubernetes/admin.conf",
			"- name: Install a chart from a repository\n  helm:\n    name: metrics-server\n    namespace: kube-system\n" +
				"    chart: metrics-server\n    repo_url: https://kubernetes-sigs.github.io/metrics-server\n    version: 3.13.0",
			"- name: Uninstall a release\n  helm:\n    name: shop\n    namespace: shop\n    state: absent\n    wait: true",
		},
		Returns: []module.Return{
			{Key: "status", Type: "dict", Doc: "status of the release: name, namespace, revision, status, chart, " +
				"app_version, updated; empty if there is no release"},
			{Key: "recovered", Type: "str", Doc: "output of helm when it recovered an interrupted change"},
		},
		New: func() module.Runner { return new(Helm) },
	}
}

// Rules implements schema.Ruled.
func (*Helm) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("name"),
		schema.Parses("the name of a release", isRelease, "name"),
		schema.Parses("a time such as 90 or 5m30s", isTimeout, "timeout"),
		schema.Needs("chart").If("state", "present"),
		schema.Refuses("replace").If("state", "absent"),
		schema.AtMostOne("replace", "history_max"),
		schema.Looks("an address, a path or a name that does not begin with a dash", schema.NoDash, "chart"),
		schema.AddressOr("a path or a name", "chart"),
		schema.Address("repo_url"),
	}
}

// Run implements module.Runner.
func (m *Helm) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if _, err := strconv.Atoi(m.Timeout); err == nil {
		m.Timeout += "s"
	}
	if m.State == "absent" {
		return m.absent(ctx, c)
	}
	bundle, err := m.pack(c)
	if err != nil {
		return module.Result{}, err
	}
	return m.present(ctx, c, bundle)
}

var (
	releaseName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
	duration    = regexp.MustCompile(`^([0-9]+(h|m|s|ms))+$`)
)

func isRelease(name string) error {
	if len(name) > 53 || !releaseName.MatchString(name) {
		return fmt.Errorf("%q is not the name of a release: lower-case letters, digits, - and ., at most 53", name)
	}
	return nil
}

func isTimeout(text string) error {
	if _, err := strconv.Atoi(text); err != nil && !duration.MatchString(text) {
		return fmt.Errorf("timeout %q is not a time: give seconds, or 5m30s", text)
	}
	return nil
}

func (m *Helm) script(call string) *hostscript.Script {
	s := hostscript.New(library, helmScript, call).Args(m)
	s.Large, s.Env = true, m.access()
	return s
}

// access says by helm's own variables how the cluster is reached otherwise than
// by the kubeconfig: a command line would show the token.
func (m *Helm) access() map[string]string {
	env := map[string]string{}
	for name, v := range map[string]string{"HELM_KUBEAPISERVER": m.Host, "HELM_KUBETOKEN": m.Token.Reveal(),
		"HELM_KUBECAFILE": m.CA} {
		if v != "" {
			env[name] = v
		}
	}
	if !m.Validate {
		env["HELM_KUBEINSECURE_SKIP_TLS_VERIFY"] = "true"
	}
	return env
}

// deploy is the script with everything for the chart.
func (m *Helm) deploy(call string, l *bundle) *hostscript.Script {
	s := m.script(call).Set("chart", l.chart).Set("old_values", m.oldValues())
	s.Flag("own_cache", l.ownCache).Flag("dependencies", l.dependencies)
	s.Stdin = strings.NewReader(l.tar)
	return s
}

// oldValues is helm's flag for the values of the last upgrade.
func (m *Helm) oldValues() string {
	switch {
	case m.Reset:
		return "--reset-values"
	case m.Reuse:
		return "--reuse-values"
	case m.ResetReuse:
		return "--reset-then-reuse-values"
	}
	return ""
}

func (m *Helm) present(ctx context.Context, c *module.Call, l *bundle) (module.Result, error) {
	a, err := run(ctx, c, m.deploy("helm_look", l).Flag("render", c.Check || c.Diff))
	var missing *missingError
	if c.Check && errors.As(err, &missing) {
		return module.Result{Changed: true, Warnings: []string{err.Error()},
			Data: value.NewDict("status", value.NewDict())}, nil
	}
	if err != nil {
		return module.Result{}, err
	}
	r := module.Result{Data: value.NewDict("status", releaseOf(a))}
	if said := a.Get("recovered"); said != "" {
		r.Changed = true
		r.Data.Set("recovered", strings.TrimSpace(said))
	}
	if err := m.errorOf(a); err != nil {
		return fail(r, err)
	}
	change, err := m.compare(c, a)
	if err != nil {
		return fail(r, err)
	}
	r.Changed = r.Changed || change.needed
	r.Warnings = append(l.warnings, change.warnings...)
	if c.Diff && change.needed {
		r.Diff = change.diff
	}
	if c.Check || !change.needed {
		return r, nil
	}
	return m.act(ctx, c, l, r)
}

func (m *Helm) act(ctx context.Context, c *module.Call, l *bundle, r module.Result) (module.Result, error) {
	a, err := run(ctx, c, m.deploy("helm_act", l))
	if err != nil {
		return module.Result{}, err
	}
	if err := m.errorOf(a); err != nil {
		return fail(r, err)
	}
	r.Data.Set("status", releaseOf(a))
	return r, nil
}

// errorOf is helm's error message for a failed command.
func (m *Helm) errorOf(a hostscript.Answer) error {
	if _, failed := a["error"]; !failed {
		return nil
	}
	return m.wrong(a.Get("error"))
}

func (m *Helm) wrong(said string) error {
	var data []string
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "WARNING: ") &&
			!strings.HasPrefix(line, "level=") {
			data = append(data, strings.TrimPrefix(line, "Error: "))
		}
	}
	return fmt.Errorf("release %s/%s: %s", m.Namespace, m.Name, strings.Join(data, "\n"))
}

// releaseOf is the release in the form of helm list.
func releaseOf(a hostscript.Answer) *value.Dict {
	v, _ := value.FromJSON([]byte(a.Get("list")))
	if list, ok := v.([]any); ok && len(list) == 1 {
		if d, ok := list[0].(*value.Dict); ok {
			return d
		}
	}
	return value.NewDict()
}

// change is whether a release must change, and how.
type change struct {
	needed   bool
	diff     []event.Diff
	warnings []string
}

func (m *Helm) compare(c *module.Call, a hostscript.Answer) (change, error) {
	now, err := releaseJSON(a.Get("now"))
	if err != nil {
		return change{}, err
	}
	next, err := releaseJSON(a.Get("next"))
	if err != nil {
		return change{}, err
	}
	status := a.Get("status")
	fresh := status == "" || status == "uninstalling" || strings.HasPrefix(status, "pending-")
	if said, failed := a["unrendered"]; failed {
		if fresh && c.Check && !notYet(said[0]) && !strings.Contains(said[0], "ensure CRDs are installed") {
			return change{}, m.wrong(said[0])
		}
		if !fresh {
			return change{}, m.wrong(said[0])
		}
		return change{needed: true, warnings: []string{"not compared: " + m.wrong(said[0]).Error()}}, nil
	}
	return change{
		needed: fresh || status != "deployed" || !sameRelease(now, next, releaseOf(a)),
		diff:   m.diff(now, next),
	}, nil
}

func releaseJSON(text string) (object, error) {
	if text == "" {
		return object{value.NewDict()}, nil
	}
	// helm may print warnings before the document.
	if i := strings.IndexByte(text, '{'); i > 0 {
		text = text[i:]
	}
	v, err := value.FromJSON([]byte(text))
	d, ok := v.(*value.Dict)
	if err != nil || !ok {
		return object{}, fmt.Errorf("read what helm prints: %w", err)
	}
	return object{d}, nil
}

// sameRelease compares a release with its desired state. listed is the
// release as helm list has it: its chart is NAME-VERSION.
func sameRelease(now, next object, listed *value.Dict) bool {
	if chart := next.text("chart", "metadata", "name") + "-" +
		next.text("chart", "metadata", "version"); chart != "-" && chart != listed.String("chart") {
		return false
	}
	return sameValues(now.at("config"), next.at("config")) &&
		now.text("manifest") == next.text("manifest") && hooks(now) == hooks(next)
}

// sameValues compares values; none at all are as good as empty ones.
func sameValues(a, b any) bool {
	da, _ := a.(*value.Dict)
	db, _ := b.(*value.Dict)
	if da.Len() == 0 || db.Len() == 0 {
		return da.Len() == db.Len()
	}
	return value.Equal(da, db)
}

// hooks is the manifests of a release's hooks.
func hooks(release object) string {
	list, _ := release.at("hooks").([]any)
	var b strings.Builder
	for _, v := range list {
		if d, ok := v.(*value.Dict); ok {
			b.WriteString("---\n# Source: " + d.String("path") + "\n" + d.String("manifest") + "\n")
		}
	}
	return b.String()
}

func (m *Helm) diff(now, next object) []event.Diff {
	header := m.Namespace + "/" + m.Name
	before, after := manifest(now.text("manifest")+hooks(now)), manifest(next.text("manifest")+hooks(next))
	d := event.Diff{BeforeHeader: header, AfterHeader: header, Before: before, After: after}
	if before == after {
		d.Note = header + ": the visible part of the manifest does not change; the chart version, the values or a " +
			"Secret change"
	}
	return []event.Diff{d}
}

// manifest is a manifest with the data of its Secrets hidden.
func manifest(text string) string {
	var b strings.Builder
	for i, doc := range strings.Split("\n"+text, "\n---") {
		if i > 0 {
			b.WriteString("\n---")
		}
		b.WriteString(openOnly(doc))
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// openOnly is a document as it is, or rewritten if it holds a Secret. What
// cannot be read cannot be trusted to hold none.
func openOnly(doc string) string {
	objects, err := fromYAML(doc)
	if err != nil {
		return "\n# a document that is not YAML\n"
	}
	secret := false
	for _, o := range objects {
		secret = secret || o.kind() == "Secret"
	}
	if !secret {
		return doc
	}
	var b strings.Builder
	for _, o := range objects {
		text, err := value.JSON(shown(o), value.JSONOptions{Indent: 2})
		if err != nil {
			return "\n# a Secret\n"
		}
		b.WriteString("\n" + text)
	}
	return b.String()
}

func (m *Helm) absent(ctx context.Context, c *module.Call) (module.Result, error) {
	a, err := run(ctx, c, m.script("helm_absent"))
	var missing *missingError
	if c.Check && errors.As(err, &missing) {
		return module.Result{Warnings: []string{err.Error()}, Data: value.NewDict("status", value.NewDict())}, nil
	}
	if err != nil {
		return module.Result{}, err
	}
	there := a.Get("status") != "" && a.Get("status") != "uninstalled"
	r := module.Result{Changed: there, Data: value.NewDict("status", value.NewDict())}
	if there {
		r.Data.Set("status", releaseOf(a))
	}
	if err := m.errorOf(a); err != nil {
		return fail(r, err)
	}
	return r, nil
}
