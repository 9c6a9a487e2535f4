// Package roles runs single roles of the builtin project on hosts of a lab,
// with programs of etcd and containerd where this machine has them: in the
// folder $KK_UPSTREAM or ~/.cache/kk-upstream, as NAME-VERSION/ARCH/PROGRAM.
package roles
