package file

import (
	"fmt"
	"strconv"

	"kubekey/pkg/shell"
)

// listing is a recursive listing of a folder on the host.
type listing struct {
	root   string
	follow bool
	depth  int    // 0 means unlimited
	tests  string // for find, as shell code
	flags  string // for kk_probe, for data that find does not provide; "" is fastest
	limit  int64  // maximum size of content
}

// foundFormat makes GNU find print the format of kk_probe, without a process per file.
const foundFormat = `N%p\0S#%y %m %U %G %s %n %i %D %A@ %T@ %C@/%u/%g\0T%l\0.\0`

// code returns the shell code of the listing. Folders that cannot be read are reported on standard error and
// skipped. GNU find fails if the current folder is not accessible, such as the home of another user.
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
