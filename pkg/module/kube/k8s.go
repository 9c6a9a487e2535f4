package kube

import (
	"context"
	_ "embed"

	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed k8s.sh
var k8sScript string

// K8s is the module k8s.
type K8s struct {
	Access
	Waiting
	Hiding
	State          string `kk:"state" default:"present" choices:"present,absent,patched" doc:"whether the cluster has the objects; patched changes those that it has and makes none"`
	Definition     any    `kk:"definition,alias=resource_definition|inline" doc:"objects: a dictionary, a list of them, or YAML of one or more documents"`
	Src            string `kk:"src,path,file=files" doc:"YAML file of the control node, searched in files/ of the role; a folder, whose files *.yaml, *.yml and *.json are taken in the order of their names; or an http(s) address that the control node reads"`
	Template       any    `kk:"template,file=templates" doc:"template of such a file, searched in templates/ of the role: its path, or a dictionary with path, trim_blocks, lstrip_blocks, newline_sequence and the marks variable_start_string, block_end_string and so on; or a list of these"`
	Kind           string `kk:"kind" doc:"of the object, if nothing else gives it"`
	APIVersion     string `kk:"api_version,alias=api|version" default:"v1" doc:"of objects that name none"`
	Name           string `kk:"name" doc:"of the object, if nothing else gives it"`
	GenerateName   string `kk:"generate_name" doc:"instead of name: the cluster makes a name up that begins so; each run makes another object"`
	Namespace      string `kk:"namespace" doc:"of objects that name none. Default: that of the kubeconfig, else default"`
	FieldManager   string `kk:"field_manager" default:"kk" doc:"under which the cluster notes whose fields are"`
	ForceConflicts bool   `kk:"force_conflicts" default:"no" doc:"take over fields that another manager owns and has set otherwise; no makes them an error"`

	Labels     []string `kk:"label_selectors" doc:"only objects of the task with these labels, such as app=web, app in (a, b) or !app; with state absent and a kind without a name: all objects of the kind with them, of all namespaces unless namespace is given"`
	Force      bool     `kk:"force" default:"no" doc:"replace an object that is there as a whole: fields that the task does not name go"`
	MergeType  []string `kk:"merge_type" choices:"json,merge,strategic-merge" doc:"change an object that is there by a patch of this kind instead of applying it; of several, the first that the cluster takes. Fields that the task no longer names stay then; null takes one away"`
	AppendHash bool     `kk:"append_hash" default:"no" doc:"put - and a hash of what a ConfigMap or a Secret holds after its name, as kubectl and kustomize do: new content is a new object"`
	Continue   bool     `kk:"continue_on_error" default:"no" doc:"go on after an object that fails: the task does not fail, and results have its error"`

	ServerSide *serverSide    `kk:"server_side_apply" doc:"field_manager and force_conflicts in another place"`
	Apply      bool           `kk:"apply" default:"no" doc:"without effect but on method: objects are always applied"`
	Validation *value.Dict    `kk:"validate" doc:"without effect: the cluster itself refuses objects with fields that it does not know"`
	Delete     *deleteOptions `kk:"delete_options" doc:"how objects go away, with state absent"`
}

type serverSide struct {
	FieldManager   string `kk:"field_manager,required" doc:"under which the cluster notes whose fields are"`
	ForceConflicts bool   `kk:"force_conflicts" default:"no" doc:"take over fields that another manager owns"`
}

type deleteOptions struct {
	Propagation string `kk:"propagationPolicy" choices:"Foreground,Background,Orphan" doc:"what becomes of objects that belong to it. Default: Background"`
	Grace       *int   `kk:"gracePeriodSeconds" doc:"seconds that a Pod has to end. Default: its own"`
}

func k8sSpec() module.Spec {
	return module.Spec{
		Name: "k8s", Collection: "kubernetes.core", Former: "community.kubernetes", Groups: []string{"k8s"},
		Summary: "Creates, changes and deletes objects of a Kubernetes cluster.",
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
			{Key: "result", Type: "dict", Doc: "the object as the cluster has it, or had it, with state absent; empty if it was not there; of several objects: results, a list of changed, method and result of each"},
			{Key: "method", Type: "str", Doc: "create, update (it was there before), replace (with force), apply (with apply) or delete, if there is one object"},
			{Key: "error", Type: "dict", Doc: "with continue_on_error: msg says why the object failed; of several objects, in the results"},
			{Key: "duration", Type: "int", Doc: "seconds that waiting took, with wait"},
		},
		New: func() module.Runner { return new(K8s) },
	}
}

// Rules implements schema.Ruled.
func (*K8s) Rules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("apply", "merge_type"),
		schema.AtMostOne("name", "generate_name"),
		schema.AtMostOne("definition", "src", "template"),
		schema.AtLeastOne("definition", "src", "template", "kind"),
		schema.AtLeastOne("name", "generate_name", "label_selectors").
			Without("definition", "src", "template"),
		schema.Entries("label_selectors", 1, schema.NoLimit).
			Without("definition", "src", "template", "name", "generate_name"),
	}
}

// Run implements module.Runner.
func (m *K8s) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if m.ServerSide != nil {
		m.FieldManager, m.ForceConflicts = m.ServerSide.FieldManager, m.ServerSide.ForceConflicts
	}
	objects, err := m.objects(ctx, c)
	if err != nil {
		return module.Result{}, err
	}
	if m.State == "absent" {
		return m.absent(ctx, c, objects)
	}
	if m.State == "patched" {
		return m.patched(ctx, c, objects)
	}
	return m.present(ctx, c, objects)
}
