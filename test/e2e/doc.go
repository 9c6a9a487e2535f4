// Package e2e tests kk on real hosts: the tests build the binary, bring up a
// lab of three Debian hosts and look at what kk leaves on them.
package e2e
