package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

// Info is the module k8s_info.
type Info struct {
	Access
	Waiting
	Hiding
	Kind          string   `kk:"kind,required" doc:"kind of the objects"`
	APIVersion    string   `kk:"api_version,alias=api|version" default:"v1" doc:"API version of the kind"`
	Name          string   `kk:"name" doc:"name of a single object. Default: all"`
	Namespace     string   `kk:"namespace" doc:"namespace of the objects. Default: all; with name, that of the kubeconfig, otherwise default"`
	Labels        []string `kk:"label_selectors" doc:"label selectors that all must match, such as app=web"`
	Fields        []string `kk:"field_selectors" doc:"field selectors that all must match, such as status.phase=Running"`
	RevealSecrets bool     `kk:"reveal_secrets" default:"no" doc:"return the data of Secrets unmasked; set no_log on such a task"`
}

func infoSpec() module.Spec {
	return module.Spec{
		Name: "k8s_info", Collection: "kubernetes.core", Former: "community.kubernetes", Groups: []string{"k8s"},
		Summary: "Queries objects of a Kubernetes cluster.",
		Notes: []string{
			"For a kind that the cluster does not know, resources is empty and api_found is false.",
			"With wait, the task waits until at least one object is found and all of them are ready.",
		},
		Examples: []string{
			"- name: List the nodes\n  k8s_info:\n    kind: Node\n    kubeconfig: /etc/kubernetes/admin.conf\n" +
				"  register: nodes\n- debug:\n    msg: \"{{ nodes.resources | map(attribute='metadata.name') }}\"",
			"- name: DNS answers\n  k8s_info:\n    api_version: apps/v1\n    kind: Deployment\n    name: coredns\n" +
				"    namespace: kube-system\n    wait: true\n    wait_timeout: 300",
		},
		Returns: []module.Return{
			{Key: "resources", Type: "list", Doc: "the objects, without managedFields; the data of Secrets is hidden"},
			{Key: "api_found", Type: "bool", Doc: "whether the cluster knows the kind"},
		},
		New:   func() module.Runner { return new(Info) },
		Check: module.Harmless,
	}
}

// Run implements module.Runner.
func (m *Info) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	found, known, err := m.find(ctx, c)
	var missing *missingError
	if c.Check && errors.As(err, &missing) {
		return module.Result{Warnings: []string{err.Error()},
			Data: value.NewDict("resources", []any{}, "api_found", false)}, nil
	}
	if err == nil && m.Wait && !c.Check {
		found, err = m.until(ctx, found, func(ctx context.Context) (all []object, err error) {
			all, known, err = m.find(ctx, c)
			return all, err
		})
		if err != nil && len(found) == 0 {
			err = fmt.Errorf("%s %s: %w", m.Kind, m.Name, err)
		}
	}
	list := []any{}
	for _, o := range found {
		list = append(list, m.shown(o))
	}
	r := module.Result{Data: value.NewDict("resources", list, "api_found", known)}
	if err != nil {
		return fail(r, err) // resources is kept: until may refer to it
	}
	if !known {
		r.Msg = fmt.Sprintf("the cluster has no API of version %s with the kind %s", m.APIVersion, m.Kind)
	}
	return r, nil
}

func (m *Info) shown(o object) *value.Dict {
	if m.RevealSecrets {
		return m.less(o.Dict)
	}
	return m.Hiding.shown(o)
}

// find looks once. known is whether the cluster knows the kind.
func (m *Info) find(ctx context.Context, c *module.Call) (found []object, known bool, err error) {
	s := m.script("k8s_info").Set("kind", m.resource()).Set("name", m.Name).Set("namespace", m.Namespace)
	s.Set("labels", strings.Join(m.Labels, ",")).Set("fields", strings.Join(m.Fields, ","))
	s.Probe = true
	a, err := run(ctx, c, s)
	if err != nil {
		return nil, false, err
	}
	if said := strings.TrimSpace(a.Get("err")); a.Get("rc") != "0" {
		if strings.Contains(said, "doesn't have a resource type") || strings.Contains(said, "no matches for kind") {
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("find %s: %s", m.Kind, said)
	}
	found, err = fromJSON(a.Get("found"))
	return found, true, err
}

// resource is the kind in the form of kubectl: Kind.version.group.
func (m *Info) resource() string {
	group, version, grouped := strings.Cut(m.APIVersion, "/")
	if !grouped {
		return m.Kind + "." + group + "."
	}
	return m.Kind + "." + version + "." + group
}
