//go:build unix

package file

import (
	"strconv"
	"syscall"

	"kubekey/pkg/source"
)

// ownerOf returns the user ID of the owner of a file on the control node.
func ownerOf(tree source.Tree, name string) (string, bool) {
	info, err := tree.Stat(name)
	if err != nil {
		return "", false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", false
	}
	return strconv.Itoa(int(st.Uid)), true
}
