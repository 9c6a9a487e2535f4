// Package builtin carries the playbooks and roles that kk comes with.
package builtin

import (
	"embed"
	"io/fs"
)

//go:embed all:catalog all:config all:playbooks all:roles
var files embed.FS

// FS is the builtin project: catalog/, config/, playbooks/, roles/.
func FS() fs.FS { return files }
