package file

import (
	"fmt"
	"strconv"

	"kubekey/pkg/shell"
)

// listing is a walk over a folder of the host.
type listing struct {
	root   string
	follow bool
	depth  int    // 0: without limit
	tests  string // of find, as shell code
	flags  string // of kk_probe, for what find cannot tell; "" is fastest
	limit  int64  // of content
}

// foundFormat makes GNU find answer as kk_probe does, without a process for each file.
const foundFormat = `N%p\0S#%y %m %U %G %s %n %i %D %A@ %T@ %C@/%u/%g\0T%l\0.\0`

// code is the shell code of the walk. Folders that cannot be read are named
// on standard error and passed over. GNU find fails where the current folder
// is out of reach, as the home of another user is.
func (l listing) code() string {
	root, _ := hostWord(l.root)
	find := "find "
	if l.follow {
		find += "-L "
	}
	find += root
	if l.depth > 0 {
		find += " -maxdepth " + strconv.Itoa(l.depth)
	}
	if l.tests != "" {
		find += " " + l.tests
	}
	loop := fmt.Sprintf("%skk_begin; for kk_file; do kk_probe n%s \"$kk_file\" %d; done", library, l.flags, l.limit)
	slow := find + " -exec " + shell.Join("/bin/sh", "-c", loop, "sh") + " {} +"
	const reach = "cd . 2>/dev/null || cd /\n"
	if l.flags != "" {
		return reach + slow + " || :"
	}
	return reach + fmt.Sprintf("if find / -maxdepth 0 -printf '' 2>/dev/null; then %s -printf %s; else %s; fi || :",
		find, shell.Quote(foundFormat), slow)
}
