package inventory

import (
	"context"

	"kubekey/pkg/source"
)

// defaultText is the inventory of a run without -i: this machine as a single-node cluster.
const defaultText = `apiVersion: kubekey.kubesphere.io/v1
kind: Inventory
metadata: {name: default}
spec:
  hosts:
    localhost: {connector: {type: local}}
  groups:
    k8s_cluster: {groups: [kube_control_plane, kube_worker]}
    kube_control_plane: {hosts: [localhost]}
    kube_worker: {hosts: [localhost]}
    etcd: {hosts: [localhost]}
    image_registry: {hosts: []}
    nfs: {hosts: []}
`

// Default returns the inventory of a run without -i: localhost, without ssh, in every group
// that a single-node cluster needs.
func Default(ctx context.Context, o Options) (*Inventory, source.Diagnostics) {
	l := newLoader(ctx, o)
	l.text(source.NewFile("default inventory", []byte(defaultText)), "")
	l.finish()
	l.inv.reload = func(ctx context.Context) (*Inventory, source.Diagnostics) { return Default(ctx, o) }
	return l.inv, l.ds
}
