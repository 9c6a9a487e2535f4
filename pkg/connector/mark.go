package connector

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
)

// markName is the environment variable that marks the processes of a command.
const markName = "KK_RUN"

// NewMark returns a random value to mark the processes of one command with.
// Marks are how a cancelled command is ended on a host to which there is nothing
// but a shell: no process id is known, sudo takes processes out of reach of
// the user's signals, and a channel without a terminal hangs nothing up.
func NewMark() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails: the runtime ends the program instead
	return hex.EncodeToString(b)
}

// Marked returns line such that every process of it carries mark: in the
// environment, or, the shell that runs it, in its arguments.
func Marked(line, mark string) string {
	return "export " + markName + "=" + mark + ";" + line
}

// MarkedSimple is Marked for a line that is one simple command (program and
// words), which it keeps as one: a shell then needs no second process.
func MarkedSimple(line, mark string) string { return markName + "=" + mark + " " + line }

// killScript finds marked processes and their descendants, sends TERM, waits up
// to two seconds, and sends KILL to what is left. The brackets keep the script
// and its grep from finding themselves.
const killScript = `scan() {
	p=$(grep -ls '%[1]s[=]%[2]s' /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3 | sort -u)
	[ -n "$p" ] || return 1
	command -v awk >/dev/null 2>&1 || return 0
	p=$(cat /proc/[0-9]*/stat 2>/dev/null | awk -v p="$(echo $p)" '
		BEGIN { n = split(p, a, " "); for (i = 1; i <= n; i++) k[a[i]] = 1 }
		{ pid = $1; sub(/^.*\) /, ""); split($0, s, " "); if (s[1] != "Z") up[pid] = s[2] }
		END { do { more = 0; for (c in up) if (!(c in k) && (up[c] in k)) { k[c] = 1; more = 1 } } while (more)
			for (c in k) if (c in up) print c }')
}
alive() { for q in $p; do kill -0 "$q" 2>/dev/null && return 0; done; return 1; }
scan || exit 0
kill -TERM $p 2>/dev/null
i=0
while [ $i -lt 20 ] && alive; do sleep 0.1 2>/dev/null || sleep 1; i=$((i+1)); done
old=$p
scan || p=
for q in $old $p; do kill -KILL "$q" 2>/dev/null; done
exit 0
`

// KillMarked returns the command line that ends the processes that carry mark. It
// needs /proc; where there is none it does nothing.
func KillMarked(mark string) string {
	return fmt.Sprintf(strings.ReplaceAll(killScript, "\n\n", "\n"), markName, mark)
}
