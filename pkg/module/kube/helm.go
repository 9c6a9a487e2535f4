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
	Name            string      `kk:"name,required,alias=release_name" doc:"of the release"`
	Namespace       string      `kk:"namespace,alias=release_namespace" default:"default" doc:"of the release"`
	State           string      `kk:"state,alias=release_state" default:"present" choices:"present,absent" doc:"whether the release is installed"`
	CreateNamespace bool        `kk:"create_namespace" default:"no" doc:"make the namespace if it is missing"`
	Chart           string      `kk:"chart,alias=chart_ref" doc:"a .tgz or a folder of the control node, searched in files/ of the role; or a URL, an oci:// reference, a repository's chart (REPO/NAME), or the name of a chart of repo_url"`
	Version         string      `kk:"version,alias=chart_version" doc:"of the chart. Default: the newest; a file has its own"`
	RepoURL         string      `kk:"repo_url,alias=chart_repo_url" doc:"address of the chart's repository"`
	Values          *value.Dict `kk:"values,alias=release_values" doc:"values over those of the chart and of values_files"`
	ValuesFiles     []string    `kk:"values_files,file=files" doc:"YAML files of the control node, searched in files/ of the role; later ones win"`
	SetValues       []setValue  `kk:"set_values" doc:"single values over all others, as helm's --set takes them. They stand on helm's command line, which other users of the host may see: secrets belong into values"`
	Reset           bool        `kk:"reset_values" default:"yes" doc:"the values are those of the task alone: values of an earlier upgrade do not stay"`
	Reuse           bool        `kk:"reuse_values" default:"no" doc:"the task's values go over those of the last upgrade; with reset_values: no"`
	ResetReuse      bool        `kk:"reset_then_reuse_values" default:"no" doc:"the same, and those of the last upgrade over those of the new chart; with reset_values: no"`
	UpdateRepos     bool        `kk:"update_repo_cache" default:"no" doc:"read the indexes of the repositories that the host's helm knows anew before; not in check mode"`
	DependencyUp    bool        `kk:"dependency_update,alias=dep_up" default:"no" doc:"fetch what a chart that is a folder depends on, in the copy on the host"`
	PostRenderer    string      `kk:"post_renderer" doc:"program of the host that the manifests go through: a name or a path"`
	Replace         bool        `kk:"replace" default:"no" doc:"install only: take the name of a release that was removed with its history kept; a release that is there and would change is an error"`
	Purge           bool        `kk:"purge" default:"yes" doc:"with state absent: remove the history of the release, too"`
	Wait            bool        `kk:"wait" default:"no" doc:"wait until all that the chart makes is ready; with state absent: until it is gone"`
	Timeout         string      `kk:"timeout,alias=wait_timeout" default:"5m" doc:"for a single step of helm: seconds, or with a unit as in 5m30s"`
	Atomic          bool        `kk:"atomic" default:"no" doc:"take a failed change back; waits too"`
	SkipCRDs        bool        `kk:"skip_crds" default:"no" doc:"do not install what the chart has in crds/"`
	Helm            string      `kk:"binary,alias=binary_path" default:"helm" doc:"the program on the host: a name or a path"`
	Kubeconfig      string      `kk:"kubeconfig,path" doc:"file on the host. Default: the variable KUBECONFIG of the task's environment, else ~/.kube/config"`
	Context         string      `kk:"context,alias=kube_context" doc:"of the kubeconfig. Default: its current one"`
	HistoryMax      *int        `kk:"history_max" doc:"revisions to keep; 0 for all. Default: helm's own, 10"`
	Force           bool        `kk:"force" default:"no" doc:"replace objects that cannot be changed otherwise"`
	NoHooks         bool        `kk:"disable_hook" default:"no" doc:"run no hooks of the chart"`

	Host     string        `kk:"host" doc:"address of the API server. Default: that of the kubeconfig, which need not be there when this is given"`
	Token    redact.Secret `kk:"api_key" doc:"token to show the server, instead of what the kubeconfig has"`
	Validate bool          `kk:"validate_certs,alias=verify_ssl" default:"yes" doc:"verify the server's certificate, unless the kubeconfig says otherwise"`
	CA       string        `kk:"ca_cert,path,alias=ssl_ca_cert" doc:"file on the host with certificates of authorities"`
}

// setValue is one entry of set_values.
type setValue struct {
	Value string `kk:"value,required" doc:"KEY=VALUE, as helm takes it: a.b[0]=c"`
	Type  string `kk:"value_type" default:"raw" choices:"raw,string,json,file" doc:"raw guesses the type of the value; a file is one of the control node, searched in files/ of the role, whose text is the value"`
}

func helmSpec() module.Spec {
	return module.Spec{
		Name: "helm", Collection: "kubernetes.core", Former: "community.kubernetes", Groups: []string{"helm"},
		Summary: "Installs, upgrades and removes releases of Helm charts.",
		Notes: []string{
			"The host's helm does the work. Charts and values files of the control node travel to a temporary folder of the host that only the user may read, and that is removed.",
			"A release is upgraded if its chart, its values, its manifest or its hooks would be others than they are, or if its last change failed. The comparison renders the chart against the cluster; a chart that renders something random each time is upgraded each time.",
			"What an interrupted run left is mended first: a pending installation is uninstalled, a pending upgrade is rolled back to the last revision that was deployed. So do not run helm on the same release elsewhere at the same time.",
			"Helm does not change definitions of crds/ once they are there.",
			"The data of Secrets is hidden in differences.",
		},
		Examples: []string{
			"- name: The network\n  helm:\n    name: flannel\n    namespace: kube-flannel\n    create_namespace: true\n    chart: /var/cache/charts/flannel.tgz\n    values:\n      podCidr: 10.233.64.0/18\n    wait: true\n    kubeconfig: /etc/kubernetes/admin.conf",
			"- name: A chart of a repository\n  helm:\n    name: metrics-server\n    namespace: kube-system\n    chart: metrics-server\n    repo_url: https://kubernetes-sigs.github.io/metrics-server\n    version: 3.13.0",
			"- name: Away with it\n  helm:\n    name: shop\n    namespace: shop\n    state: absent\n    wait: true",
		},
		Returns: []module.Return{
			{Key: "status", Type: "dict", Doc: "of the release: name, namespace, revision, status, chart, app_version, updated; empty without one"},
			{Key: "recovered", Type: "str", Doc: "what helm said when an interrupted change was mended, if one was"},
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
	luggage, err := m.pack(c)
	if err != nil {
		return module.Result{}, err
	}
	return m.present(ctx, c, luggage)
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
	for name, v := range map[string]string{"HELM_KUBEAPISERVER": m.Host, "HELM_KUBETOKEN": m.Token.Reveal(), "HELM_KUBECAFILE": m.CA} {
		if v != "" {
			env[name] = v
		}
	}
	if !m.Validate {
		env["HELM_KUBEINSECURE_SKIP_TLS_VERIFY"] = "true"
	}
	return env
}

// deploy is the script with all that concerns the chart.
func (m *Helm) deploy(call string, l *luggage) *hostscript.Script {
	s := m.script(call).Set("chart", l.chart).Set("old_values", m.oldValues())
	s.Flag("own_cache", l.ownCache).Flag("dependencies", l.dependencies)
	s.Stdin = strings.NewReader(l.tar)
	return s
}

// oldValues is what becomes of the values of the last upgrade, as helm's flag says it.
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

func (m *Helm) present(ctx context.Context, c *module.Call, l *luggage) (module.Result, error) {
	a, err := run(ctx, c, m.deploy("helm_look", l).Flag("render", c.Check || c.Diff))
	var missing *missingError
	if c.Check && errors.As(err, &missing) {
		return module.Result{Changed: true, Warnings: []string{err.Error()}, Data: value.NewDict("status", value.NewDict())}, nil
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

func (m *Helm) act(ctx context.Context, c *module.Call, l *luggage, r module.Result) (module.Result, error) {
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

// errorOf is what helm says of a command that failed.
func (m *Helm) errorOf(a hostscript.Answer) error {
	if _, failed := a["error"]; !failed {
		return nil
	}
	return m.wrong(a.Get("error"))
}

func (m *Helm) wrong(said string) error {
	var told []string
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "WARNING: ") && !strings.HasPrefix(line, "level=") {
			told = append(told, strings.TrimPrefix(line, "Error: "))
		}
	}
	return fmt.Errorf("release %s/%s: %s", m.Namespace, m.Name, strings.Join(told, "\n"))
}

// releaseOf is the release as helm list tells of it.
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

// sameRelease compares a release with what it would become. listed is the
// release as helm list has it: its chart is NAME-VERSION.
func sameRelease(now, next object, listed *value.Dict) bool {
	if chart := next.text("chart", "metadata", "name") + "-" + next.text("chart", "metadata", "version"); chart != "-" && chart != listed.String("chart") {
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
		d.Note = header + ": the manifest that may be shown stays; the chart's version, the values or a Secret change"
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
