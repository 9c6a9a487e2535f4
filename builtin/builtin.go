// Package builtin embeds the playbooks and roles that kk ships.
package builtin

import (
	"embed"
	"io/fs"
)

//go:embed all:catalog all:config all:convert all:playbooks all:roles
var files embed.FS

// FS is the builtin project: catalog/, config/, convert/, playbooks/, roles/.
func FS() fs.FS { return files }
