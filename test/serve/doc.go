// Package serve holds the tests of `kk artifact serve` with the programs that use it: the conformance tests of the
// OCI distribution specification, skopeo, containerd, curl, apt-get, dnf, and kk itself.
package serve
