// Package badinput holds broken playbooks, inventories and templates, each
// with what kk says of it, word for word: the place under the mark is half of
// a good error.
//
// A case is a file of testdata, in the txtar format. Above its files stand
// comments, and lines that say how kk is called (default: "args: run guard.yml
// site.yml") and how it ends (default: "exit: 4"). guard.yml is written by the
// test and must not run. The last file, want, is what kk writes to standard
// error. To add a case write all but want, run
//
//	go test ./test/badinput -update
//
// and read what it says: are line and column right, and is the help one?
package badinput
