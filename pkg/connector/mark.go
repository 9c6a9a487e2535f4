package connector

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
)

// markName is the environment variable that marks the processes of a command.
const markName = "KK_RUN"

// NewMark returns a random value that marks the processes of one command, by which they
// are found when the command is cancelled. There is no other way with only a shell on the
// host: the process id is unknown, sudo puts processes out of reach of the user's signals,
// and closing a channel without a terminal sends no SIGHUP.
func NewMark() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails: the runtime aborts instead
	return hex.EncodeToString(b)
}

// Marked returns line such that each of its processes has the mark in its environment or,
// for the shell that runs it, in its arguments.
func Marked(line, mark string) string {
	return "export " + markName + "=" + mark + ";" + line
}

// MarkedSimple is Marked for a line that is one simple command (a program and its
// arguments). It remains one, so a shell needs no second process for it.
func MarkedSimple(line, mark string) string { return markName + "=" + mark + " " + line }

// killScript finds marked processes and their descendants, sends TERM, and two seconds
// later KILL to those that remain. It stops after finding nothing twice, because a process
// in the middle of an exec shows no mark. The brackets keep the script and its grep from
// finding themselves.
const killScript = `scan() {
	p=$(grep -ls '%[1]s[=]%[2]s' /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3 | sort -u)
	[ -n "$p" ] || return 1
	command -v awk >/dev/null 2>&1 || return 0
	p=$(cat /proc/[0-9]*/stat 2>/dev/null | awk -v p="$(echo $p)" '
		BEGIN { n = split(p, a, " "); for (i = 1; i <= n; i++) k[a[i]] = 1 }
		{ pid = $1; sub(/^.*\) /, ""); split($0, s, " "); if (s[1] != "Z") up[pid] = s[2] }
		END { do { more = 0; for (c in up) if (!(c in k) && (up[c] in k)) { k[c] = 1; more = 1 } } while (more)
			for (c in k) if (c in up) print c }')
	[ -n "$p" ]
}
alive() {
	for q in $sent; do
		l=
		{ read -r l <"/proc/$q/stat"; } 2>/dev/null
		case $l in ''|*') Z '*) ;; *) return 0 ;; esac
	done
	return 1
}
sent=' ' quiet=0 i=0
while [ $quiet -lt 2 ] && [ $i -lt 40 ]; do
	if scan; then
		for q in $p; do
			case $sent in *" $q "*) ;; *) kill -TERM "$q"; sent="$sent$q " ;; esac
		done
	fi 2>/dev/null
	if alive; then quiet=0; else quiet=$((quiet+1)); fi
	i=$((i+1))
	[ $i -lt 20 ] || kill -KILL $sent 2>/dev/null
	sleep 0.1 2>/dev/null || sleep 1
done
exit 0
`

// KillMarked returns the command line that kills the processes with mark. It needs /proc
// and does nothing without it.
func KillMarked(mark string) string {
	return fmt.Sprintf(killScript, markName, mark)
}
