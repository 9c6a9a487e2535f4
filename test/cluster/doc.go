// Package cluster builds Kubernetes clusters with kk on the hosts of a lab, out
// of the lab's mirror, and looks at what runs: "make e2e-cluster".
//
// The tests share the hosts, one cluster after the other, so each also proves
// that the one before left nothing in its way. They need root on Debian, and
// are skipped with the reason where that is missing.
package cluster
