package kube

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
)

//go:embed k8s.sh
var k8sScript string

// Access is how a module reaches the cluster.
type Access struct {
	Kubectl    string `kk:"kubectl" default:"kubectl" doc:"the program on the host: a name or a path"`
	Kubeconfig string `kk:"kubeconfig,path" doc:"file on the host. Default: the variable KUBECONFIG of the task's environment, else ~/.kube/config"`
	Context    string `kk:"context" doc:"of the kubeconfig. Default: its current one"`
}

func (a Access) script(call string) *script {
	s := &script{code: k8sScript, call: call}
	return s.set("kubectl", a.Kubectl).set("kubeconfig", a.Kubeconfig).set("context", a.Context)
}

// K8s is the module k8s.
type K8s struct {
	Access
	Waiting
	State          string `kk:"state" default:"present" choices:"present,absent" doc:"whether the cluster has the objects"`
	Definition     any    `kk:"definition,alias=resource_definition|inline" doc:"objects: a dictionary, a list of them, or YAML of one or more documents"`
	Src            string `kk:"src,path" doc:"YAML file of the control node, searched in files/ of the role; a folder, whose files *.yaml, *.yml and *.json are taken in the order of their names; or an http(s) address that the control node reads"`
	Template       string `kk:"template,path" doc:"template of such a file, searched in templates/ of the role"`
	Kind           string `kk:"kind" doc:"of the object, if nothing else gives it; with name"`
	APIVersion     string `kk:"api_version,alias=api|version" default:"v1" doc:"of the object that kind and name give"`
	Name           string `kk:"name" doc:"of the object that kind gives"`
	Namespace      string `kk:"namespace" doc:"of objects that name none. Default: that of the kubeconfig, else default"`
	FieldManager   string `kk:"field_manager" default:"kk" doc:"under which the cluster notes whose fields are"`
	ForceConflicts bool   `kk:"force_conflicts" default:"no" doc:"take over fields that another manager owns and has set otherwise; no makes them an error"`
}

func k8sSpec() module.Spec {
	return module.Spec{
		Name: "k8s", Collection: "kubernetes.core",
		Template: "template",
		Summary:  "Creates, changes and deletes objects of a Kubernetes cluster.",
		Notes: []string{
			"The host's kubectl applies the objects, by server-side apply: fields that the task does not name stay as they are, fields that it named before and names no more are removed.",
			"Namespaces and CustomResourceDefinitions go first, and definitions are established before objects of their kinds follow. If an object is refused, the others are applied nevertheless, and the error names each that was not.",
			"Whether an object changed is told by its resourceVersion, and by what it holds when only its field managers differ. Check mode asks the API server for a dry run and compares; an object of a namespace or a kind that is not there yet counts as created.",
			"The data of Secrets is hidden in results and differences.",
		},
		Examples: []string{
			"- name: A namespace\n  k8s:\n    kind: Namespace\n    name: shop",
			"- name: The shop runs\n  k8s:\n    template: shop.yaml.j2\n    namespace: shop\n    wait: true\n    wait_timeout: 300\n    kubeconfig: /etc/kubernetes/admin.conf",
			"- name: Away with a job\n  k8s:\n    state: absent\n    api_version: batch/v1\n    kind: Job\n    name: migrate\n    namespace: shop\n    wait: true",
		},
		Returns: []module.Return{
			{Key: "result", Type: "dict", Doc: "the object as the cluster has it; of several objects: results, a list of changed, method and result of each"},
			{Key: "method", Type: "str", Doc: "create, apply or delete, if there is one object"},
			{Key: "duration", Type: "int", Doc: "seconds that waiting took"},
		},
		New: func() module.Runner { return new(K8s) },
	}
}

// Run implements module.Runner.
func (m *K8s) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	objects, err := m.objects(ctx, c)
	if err != nil {
		return module.Result{}, err
	}
	if m.State == "absent" {
		return m.absent(ctx, c, objects)
	}
	return m.present(ctx, c, objects)
}

// objects are those of the task, complete and checked.
func (m *K8s) objects(ctx context.Context, c *module.Call) ([]object, error) {
	objects, err := m.read(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(objects) == 0 {
		return nil, errors.New("there is no object in what the task gives")
	}
	var wrong []error
	seen := map[string]bool{}
	for _, o := range objects {
		if m.Namespace != "" && o.namespace() == "" {
			o.setNamespace(m.Namespace)
		}
		err := o.check()
		if err == nil && seen[o.key()] {
			err = fmt.Errorf("%s is there twice", o)
		}
		wrong = append(wrong, err)
		seen[o.key()] = true
	}
	return objects, errors.Join(wrong...)
}

func (o object) setNamespace(ns string) {
	meta, ok := o.at("metadata").(*value.Dict)
	if !ok {
		meta = value.NewDict()
		o.Set("metadata", meta)
	}
	meta.Set("namespace", ns)
}

// read takes the objects from the one argument that gives them.
func (m *K8s) read(ctx context.Context, c *module.Call) ([]object, error) {
	given := 0
	for _, is := range []bool{m.Definition != nil, m.Src != "", m.Template != ""} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, errors.New("definition, src and template exclude each other")
	case m.Definition != nil:
		return m.definition()
	case m.Src != "":
		return m.source(ctx, c)
	case m.Template != "":
		return m.rendered(ctx, c)
	case m.Kind == "" || m.Name == "":
		return nil, errors.New("one of definition, src, template, or kind and name is required")
	}
	meta := value.NewDict("name", m.Name)
	return []object{{value.NewDict("apiVersion", m.APIVersion, "kind", m.Kind, "metadata", meta)}}, nil
}

func (m *K8s) definition() ([]object, error) {
	if text, ok := m.Definition.(string); ok {
		return fromYAML(text)
	}
	return flatten(value.Clone(m.Definition))
}

func (m *K8s) source(ctx context.Context, c *module.Call) ([]object, error) {
	if strings.HasPrefix(m.Src, "http://") || strings.HasPrefix(m.Src, "https://") {
		text, err := fetch(ctx, m.Src)
		if err != nil {
			return nil, err
		}
		return parse(m.Src, text)
	}
	path, err := c.Find("files", m.Src)
	if err != nil {
		return nil, err
	}
	if c.Files.IsDir(path) {
		return readFolder(c.Files, path)
	}
	return readManifest(c.Files, path)
}

// readFolder reads the manifests of a folder as kubectl does: not those of folders below.
func readFolder(files source.Tree, dir string) ([]object, error) {
	list, err := files.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []object
	for _, e := range list {
		path := source.Join(dir, e.Name())
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) || files.IsDir(path) {
			continue
		}
		objects, err := readManifest(files, path)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no manifest is in the folder", dir)
	}
	return all, nil
}

func readManifest(files source.Tree, path string) ([]object, error) {
	text, err := files.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(path, text)
}

func parse(name string, text []byte) ([]object, error) {
	objects, err := fromYAML(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return objects, nil
}

// maxSource bounds what is read from an address.
const maxSource = 64 << 20

func fetch(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", address, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read %s: the server says %s", address, resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxSource+1))
	if err == nil && len(text) > maxSource {
		err = fmt.Errorf("read %s: it has more than %d bytes", address, maxSource)
	}
	return text, err
}

func (m *K8s) rendered(ctx context.Context, c *module.Call) ([]object, error) {
	path, err := c.Find("templates", m.Template)
	if err != nil {
		return nil, err
	}
	compiled, err := c.Templates.File(path, template.FileOptions{})
	if err != nil {
		return nil, err
	}
	text, err := compiled.Text(ctx, c.Scope)
	if err != nil {
		return nil, err
	}
	objects, err := fromYAML(text)
	if err != nil {
		return nil, fmt.Errorf("%s, rendered: %w", m.Template, err)
	}
	return objects, nil
}

// outcome is what became of one object.
type outcome struct {
	object  object // after
	before  *object
	changed bool
	method  string
}

func (m *K8s) present(ctx context.Context, c *module.Call, objects []object) (module.Result, error) {
	var all []outcome
	var warnings []string
	var failed error
	for _, stage := range stages(objects) {
		done, warned, err := m.apply(ctx, c, stage)
		all, warnings, failed = append(all, done...), append(warnings, warned...), errors.Join(failed, err)
		if failed == nil {
			failed = m.established(ctx, c, stage)
		}
		if failed != nil {
			break
		}
	}
	r := result(all, len(objects) == 1)
	r.Warnings = warnings
	if c.Diff {
		r.Diff = diffs(all)
	}
	if failed != nil {
		return fail(r, failed)
	}
	if m.Wait && !c.Check {
		return m.wait(ctx, c, r, all)
	}
	return r, nil
}

// fail is the result of what went wrong, with what was done before.
func fail(r module.Result, err error) (module.Result, error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || lostHost(err) {
		return module.Result{}, err
	}
	r.Failed, r.Msg = true, err.Error()
	return r, nil
}

// stages is the order of application: namespaces and definitions of kinds
// first, in a stage of their own if objects of these kinds may follow.
func stages(objects []object) [][]object {
	var first, rest []object
	defines := false
	for _, kind := range []string{"Namespace", "CustomResourceDefinition"} {
		for _, o := range objects {
			if o.kind() == kind {
				first = append(first, o)
				defines = defines || kind == "CustomResourceDefinition"
			}
		}
	}
	for _, o := range objects {
		if o.kind() != "Namespace" && o.kind() != "CustomResourceDefinition" {
			rest = append(rest, o)
		}
	}
	if !defines || len(rest) == 0 {
		return [][]object{append(first, rest...)}
	}
	return [][]object{first, rest}
}

// apply applies objects in one round trip.
func (m *K8s) apply(ctx context.Context, c *module.Call, objects []object) ([]outcome, []string, error) {
	text, err := lines(objects)
	if err != nil {
		return nil, nil, err
	}
	s := m.script("k8s_apply").set("manager", m.FieldManager).flag("force", m.ForceConflicts)
	s.stdin = strings.NewReader(text)
	a, err := s.run(ctx, c)
	var missing *missingError
	if c.Check && errors.As(err, &missing) {
		return created(objects), []string{err.Error()}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	live, err := fromJSON(a.get("live"))
	if err != nil {
		return nil, nil, err
	}
	var done []outcome
	if whole, ok := a["all"]; ok {
		applied, err := fromJSON(whole[0])
		if err != nil {
			return nil, nil, err
		}
		if len(applied) != len(objects) {
			return nil, nil, fmt.Errorf("kubectl answers with %d objects for %d", len(applied), len(objects))
		}
		for _, o := range applied {
			done = append(done, judge(c, o, live))
		}
		return done, warnings(a["warn"]), nil
	}
	return m.singly(c, objects, live, a)
}

// singly reads the answers to objects that were sent one by one.
func (m *K8s) singly(c *module.Call, objects, live []object, a answer) ([]outcome, []string, error) {
	var done []outcome
	one, refused := a["one"], a["refused"]
	if len(one)+len(refused) != len(objects) {
		return nil, nil, fmt.Errorf("kubectl answers for %d of %d objects", len(one)+len(refused), len(objects))
	}
	for _, text := range one {
		applied, err := fromJSON(text)
		if err != nil {
			return nil, nil, err
		}
		for _, o := range applied {
			done = append(done, judge(c, o, live))
		}
	}
	// The order is kept within each kind of answer: what is not among the
	// applied objects was refused, in turn.
	var failed []error
	for i, o := range without(objects, done) {
		if i >= len(refused) {
			break
		}
		if c.Check && notYet(refused[i]) {
			done = append(done, created([]object{o})...)
			continue
		}
		failed = append(failed, fmt.Errorf("%s: %s", o, reason(o, refused[i])))
	}
	return done, warnings(a["warn"]), errors.Join(failed...)
}

// without are the objects that are not among the done.
func without(objects []object, done []outcome) []object {
	is := map[string]bool{}
	for _, d := range done {
		is[d.object.key()] = true
		bare := d.object.identity()
		if meta, ok := bare.at("metadata").(*value.Dict); ok {
			meta.Delete("namespace")
		}
		is[bare.key()] = true // the task may leave the namespace to kubectl
	}
	return slices.DeleteFunc(slices.Clone(objects), func(o object) bool { return is[o.key()] })
}

// notYet tells errors apart that a task before will have mended.
func notYet(said string) bool {
	return strings.Contains(said, "no matches for kind") || absentNamespace.MatchString(said)
}

var absentNamespace = regexp.MustCompile(`namespaces "[^"]*" not found`)

func created(objects []object) []outcome {
	var all []outcome
	for _, o := range objects {
		all = append(all, outcome{object: o, changed: true, method: "create"})
	}
	return all
}

func judge(c *module.Call, o object, live []object) outcome {
	for i, l := range live {
		if l.key() != o.key() {
			continue
		}
		same := !c.Check && l.text("metadata", "resourceVersion") == o.text("metadata", "resourceVersion")
		changed := !same && !value.Equal(settled(l), settled(o))
		return outcome{object: o, before: &live[i], changed: changed, method: "apply"}
	}
	return outcome{object: o, changed: true, method: "create"}
}

// reason is what kubectl says of an object that was refused, less its advice
// on conflicts, and without what a Secret holds.
func reason(o object, said string) string {
	said, _, conflict := strings.Cut(strings.TrimSpace(said), "\nPlease review the fields above")
	said = strings.TrimPrefix(said, "error: ")
	if conflict {
		said += "\nset force_conflicts to take these fields over, or leave them out"
	}
	if o.kind() != "Secret" {
		return said
	}
	said, _, _ = strings.Cut(said, ", error found in")
	for _, part := range []string{"data", "stringData"} {
		data, _ := o.at(part).(*value.Dict)
		for _, v := range data.All() {
			if text := value.Str(v); len(text) > 3 {
				said = strings.ReplaceAll(said, text, hidden)
			}
		}
	}
	return said
}

func warnings(texts []string) []string {
	var all []string
	for _, text := range texts {
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "Warning: "); ok {
				all = append(all, rest)
			}
		}
	}
	return all
}

func result(all []outcome, single bool) module.Result {
	r := module.Result{Data: value.NewDict()}
	list := []any{}
	for _, o := range all {
		r.Changed = r.Changed || o.changed
		list = append(list, value.NewDict("changed", o.changed, "method", o.method, "result", shown(o.object)))
	}
	if single && len(all) == 1 {
		r.Data.Set("result", shown(all[0].object))
		r.Data.Set("method", all[0].method)
		return r
	}
	r.Data.Set("result", value.NewDict("results", list))
	return r
}

func diffs(all []outcome) []event.Diff {
	var list []event.Diff
	for _, o := range all {
		if !o.changed {
			continue
		}
		d := event.Diff{BeforeHeader: o.object.String(), AfterHeader: o.object.String(), Before: "", After: ""}
		if o.before != nil {
			d.Before = wanted(*o.before)
		}
		if o.method != "delete" {
			d.After = wanted(o.object)
		}
		if o.before != nil && o.object.kind() == "Secret" && !value.Equal(o.before.at("data"), o.object.at("data")) {
			d.Note = o.object.String() + ": its data changes, and is not shown"
		}
		list = append(list, d)
	}
	return list
}

func (m *K8s) wait(ctx context.Context, c *module.Call, r module.Result, all []outcome) (module.Result, error) {
	var first, names []object
	for _, o := range all {
		first, names = append(first, o.object), append(names, o.object.identity())
	}
	start := time.Now()
	found, err := m.until(ctx, first, func(ctx context.Context) ([]object, error) { return m.live(ctx, c, names) })
	for i := range all {
		for _, o := range found {
			if o.key() == all[i].object.key() {
				all[i].object = o
			}
		}
	}
	data := result(all, len(all) == 1).Data
	data.Set("duration", int(time.Since(start).Seconds()))
	r.Data = data
	if err != nil {
		return fail(r, err)
	}
	return r, nil
}

// live is what the cluster has of objects.
func (m *K8s) live(ctx context.Context, c *module.Call, objects []object) ([]object, error) {
	text, err := lines(objects)
	if err != nil {
		return nil, err
	}
	s := m.script("k8s_get")
	s.stdin, s.probe = strings.NewReader(text), true
	a, err := s.run(ctx, c)
	if err != nil {
		return nil, err
	}
	if said := a.get("live_err"); a.get("live_rc") != "0" && !onlyUnknownKinds(said) {
		return nil, fmt.Errorf("look at the cluster: %s", strings.TrimSpace(said))
	}
	return fromJSON(a.get("live"))
}

// onlyUnknownKinds tells whether all that kubectl complains of is kinds that
// the cluster does not know: of those it has no objects.
func onlyUnknownKinds(said string) bool {
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.Contains(line, "no matches for kind") && !strings.HasPrefix(line, "ensure CRDs are installed") &&
			!strings.HasPrefix(line, "Warning: ") && line != "]" {
			return false
		}
	}
	return true
}

func (m *K8s) absent(ctx context.Context, c *module.Call, objects []object) (module.Result, error) {
	var names []object
	for _, o := range objects {
		names = append(names, o.identity())
	}
	live, err := m.live(ctx, c, names)
	var missing *missingError
	if c.Check && errors.As(err, &missing) {
		return module.Result{Warnings: []string{err.Error()}, Data: value.NewDict("result", value.NewDict())}, nil
	}
	if err != nil {
		return module.Result{}, err
	}
	var gone []outcome
	for i, o := range live {
		gone = append(gone, outcome{object: o, before: &live[i], changed: true, method: "delete"})
	}
	r := result(gone, len(objects) == 1)
	if c.Diff {
		r.Diff = diffs(gone)
	}
	if c.Check || len(live) == 0 {
		return r, nil
	}
	return m.remove(ctx, c, live, r)
}

// remove deletes what is there, the last first.
func (m *K8s) remove(ctx context.Context, c *module.Call, live []object, r module.Result) (module.Result, error) {
	var names []object
	for _, stage := range stages(live) {
		for _, o := range stage {
			names = append(names, o.identity())
		}
	}
	slices.Reverse(names)
	text, err := lines(names)
	if err != nil {
		return module.Result{}, err
	}
	seconds := strconv.Itoa(int(m.WaitTimeout.Seconds())) + "s"
	s := m.script("k8s_delete").set("wait", strconv.FormatBool(m.Wait)).set("timeout", seconds)
	s.stdin = strings.NewReader(text)
	start := time.Now()
	a, err := s.run(ctx, c)
	if err != nil {
		return module.Result{}, err
	}
	r.Data.Set("duration", int(time.Since(start).Seconds()))
	if a.get("rc") != "0" {
		return fail(r, fmt.Errorf("delete: %s", strings.TrimSpace(a.get("err"))))
	}
	return r, nil
}
