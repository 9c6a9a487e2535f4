// Package badinput holds broken playbooks, inventories and templates, each
// with what kk says of it. A case is a file of testdata: see README.md there.
package badinput
