// Package serve holds the tests of `kk artifact serve` with the programs that use it: the conformance tests of the
// OCI distribution specification, skopeo, curl, apt-get, and kk itself.
package serve
