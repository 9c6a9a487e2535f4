package upstream

import (
	"fmt"
	"os"
	"path/filepath"
)

// settings are what hosts of the lab need, given as anyone would give them.
//
// The machine's kernel has cgroup v1 and no modules, its processes cannot
// lower an oom_score_adj, and its conntrack limits are not theirs to change.
const settings = `kubernetes:
  kube_version: %[1]s
  kubelet:
    config: {failSwapOn: false, localStorageCapacityIsolation: false}
  kube_proxy:
    config: {conntrack: {maxPerCore: 0, min: 0}}
  kubeadm: {ignore_preflight_errors: [SystemVerification]}
cri:
  cgroup_driver: cgroupfs
  containerd:
    config: {plugins: {io.containerd.cri.v1.runtime: {restrict_oom_score_adj: true}}}
  registries:
    mirrors: {"%[2]s": {endpoints: ["http://%[2]s"]}}
cni: {type: flannel}
dns: {nodelocaldns: {enabled: false}}
system: {chrony: false}
catalog: {overlays: [%[3]s]}
cluster_require: {allow_cgroup_v1: true, min_free_disk_gb: {}, kernel_features: []}
`

// WriteConfig writes overlay.yaml and config.yaml, a config for clusters of
// the lab, into dir and returns the path of the config.
func (m *Mirror) WriteConfig(dir string) (string, error) {
	overlay, config := filepath.Join(dir, "overlay.yaml"), filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(overlay, m.Overlay(), 0o644); err != nil {
		return "", err
	}
	text := fmt.Sprintf(settings, m.u.built["kubernetes"].version, m.Address, overlay)
	return config, os.WriteFile(config, []byte(text), 0o600)
}
