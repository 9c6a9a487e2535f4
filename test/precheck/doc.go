// Package precheck holds the tests of the builtin role precheck. A case is a
// file in testdata: what it changes of hosts that are fit for a cluster, and
// which findings that makes. Facts and the answers of probes are given as
// variables of the command line, which rank above what a host tells.
package precheck
