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
	State          string `kk:"state" default:"present" choices:"present,absent,patched" doc:"desired state; patched changes existing objects and creates none"`
	Definition     any    `kk:"definition,alias=resource_definition|inline" doc:"objects: a dict, a list of dicts, or YAML with one or more documents"`
	Src            string `kk:"src,path,file=files" doc:"YAML file on the control node, searched for in files/ of the role; a folder, whose files *.yaml, *.yml and *.json are read in the order of their names; or an http(s) URL that the control node reads"`
	Template       any    `kk:"template,file=templates" doc:"template of such a file, searched for in templates/ of the role: its path, or a dict with path, trim_blocks, lstrip_blocks, newline_sequence and the delimiters variable_start_string, block_end_string and so on; or a list of these"`
	Kind           string `kk:"kind" doc:"of the object, unless the definition sets it"`
	APIVersion     string `kk:"api_version,alias=api|version" default:"v1" doc:"API version of objects that do not set it"`
	Name           string `kk:"name" doc:"of the object, unless the definition sets it"`
	GenerateName   string `kk:"generate_name" doc:"instead of name: prefix of a name that the cluster generates; each run creates another object"`
	Namespace      string `kk:"namespace" doc:"namespace of objects that do not set it. Default: that of the kubeconfig, otherwise default"`
	FieldManager   string `kk:"field_manager" default:"kk" doc:"name of the field manager, as which the cluster records the owner of fields"`
	ForceConflicts bool   `kk:"force_conflicts" default:"no" doc:"take over fields that another manager owns; with no, such conflicts are errors"`

	Labels     []string `kk:"label_selectors" doc:"apply only the objects of the task with these labels, such as app=web, app in (a, b) or !app; with state: absent and a kind without a name: all matching objects of the kind, in all namespaces unless namespace is set"`
	Force      bool     `kk:"force" default:"no" doc:"replace an existing object entirely: fields that the task does not set are removed"`
	MergeType  []string `kk:"merge_type" choices:"json,merge,strategic-merge" doc:"change an existing object with a patch of this type instead of applying it; of several, the first that the cluster accepts. Fields that the task no longer sets are kept then; null removes a field"`
	AppendHash bool     `kk:"append_hash" default:"no" doc:"append a hash of the content to the name of a ConfigMap or a Secret, as kubectl and kustomize do: new content makes a new object"`
	Continue   bool     `kk:"continue_on_error" default:"no" doc:"continue after a failed object: the task does not fail, and results include the error"`

	ServerSide *serverSide    `kk:"server_side_apply" doc:"field_manager and force_conflicts, as in Ansible"`
	Apply      bool           `kk:"apply" default:"no" doc:"without effect except on the returned method: objects are always applied"`
	Validation *value.Dict    `kk:"validate" doc:"without effect: the cluster itself rejects objects with unknown fields"`
	Delete     *deleteOptions `kk:"delete_options" doc:"options for deleting objects, with state: absent"`
}

type serverSide struct {
	FieldManager   string `kk:"field_manager,required" doc:"name of the field manager, as which the cluster records the owner of fields"`
	ForceConflicts bool   `kk:"force_conflicts" default:"no" doc:"take over fields that another manager owns"`
}

type deleteOptions struct {
	Propagation string `kk:"propagationPolicy" choices:"Foreground,Background,Orphan" doc:"how dependent objects are deleted. Default: Background"`
	Grace       *int   `kk:"gracePeriodSeconds" doc:"seconds that a Pod has to terminate. Default: its own"`
}

func k8sSpec() module.Spec {
	return module.Spec{
		Name: "k8s", Collection: "kubernetes.core", Former: "community.kubernetes", Groups: []string{"k8s"},
		Summary: "Creates, changes and deletes objects of a Kubernetes cluster.",
		Notes: []string{
			"It runs kubectl on the host and applies the objects server-side: fields that the task does not set are " +
				"unchanged, fields that it set before and no longer sets are removed.",
			"Namespaces and CustomResourceDefinitions are applied first, and definitions are established before objects of " +
				"their kinds follow. If an object is rejected, the others are still applied, and the error names each " +
				"rejected one.",
			"A change is detected by resourceVersion, or by the content if only field managers differ. Check mode uses a " +
				"dry run of the API server; an object in a namespace or of a kind that does not exist yet counts as created.",
			"The data of Secrets is hidden in results and diffs.",
		},
		Examples: []string{
			"- name: A namespace\n  k8s:\n    kind: Namespace\n    name: shop",
			"- name: Deploy the shop\n  k8s:\n    template: shop.yaml.j2\n    namespace: shop\n    wait: true\n" +
				"    wait_timeout: 300\n    kubeconfig: /etc/kubernetes/admin.conf",
			"- name: Delete a job\n  k8s:\n    state: absent\n    api_version: batch/v1\n    kind: Job\n    name: migrate\n" +
				"    namespace: shop\n    wait: true",
		},
		Returns: []module.Return{
			{Key: "result", Type: "dict", Doc: "the object in the cluster, or before its deletion; empty if it did not " +
				"exist; for several objects: results, a list of changed, method and result of each"},
			{Key: "method", Type: "str", Doc: "create, update (of an existing object), replace (with force), apply (with " +
				"apply) or delete, for a single object"},
			{Key: "error", Type: "dict", Doc: "with continue_on_error: msg is why the object failed; for several objects, " +
				"in results"},
			{Key: "duration", Type: "int", Doc: "seconds spent waiting, with wait"},
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
