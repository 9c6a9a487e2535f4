// Package rendered runs the playbooks that kk carries on simulated hosts, for
// every supported kind of cluster, and checks all that comes of it: files,
// manifests, scripts, units, command lines, and where secrets go.
//
// A run of the tests takes a set of clusters in which every two values of two
// dimensions meet at least once; KK_RENDER_ALL=1 takes every combination.
// KK_UPSTREAM names the folder of programs built from source, whose kubeadm
// judges the settings for its version.
package rendered
