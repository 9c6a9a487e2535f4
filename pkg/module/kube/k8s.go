package kube

import (
	"context"
	_ "embed"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
)

//go:embed k8s.sh
var k8sScript string

// Access is how a module reaches the cluster.
type Access struct {
	Kubectl    string `kk:"kubectl" default:"kubectl" doc:"the program on the host: a name or a path"`
	Kubeconfig string `kk:"kubeconfig,path" doc:"file on the host. Default: the variable KUBECONFIG of the task's environment, else ~/.kube/config"`
	Context    string `kk:"context" doc:"of the kubeconfig. Default: its current one"`
}

func (a Access) script(call string) *hostscript.Script {
	s := hostscript.New(library, k8sScript, call)
	return s.Set("kubectl", a.Kubectl).Set("kubeconfig", a.Kubeconfig).Set("context", a.Context)
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
		Name: "k8s", Collection: "kubernetes.core", Groups: []string{"k8s"},
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
