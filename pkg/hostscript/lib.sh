# shellcheck shell=sh disable=SC2034,SC2154
# Every script begins with this. Arguments key=value become variables p_key; the
# arguments after -- remain positional parameters. Answers are fields
# "key=value" that end in NUL.
LC_ALL=C
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL PATH
while [ $# -gt 0 ]; do
	case $1 in --)
		shift
		break
		;;
	esac
	eval "p_${1%%=*}=\${1#*=}"
	shift
done
nl='
'
say() { printf '%s=%s\0' "$1" "$2"; }
fail() {
	say fail "$1"
	exit 0
}
has() { command -v "$1" >/dev/null 2>&1; }
need() { # PROGRAM: fails unless the host has it
	has "$1" || fail "Failed to find required executable \"$1\" on the host: install its package first"
}
tmp=
scratch() { # creates a folder for outputs, which is removed at the end
	[ -z "$tmp" ] || return 0
	tmp=$(mktemp -d) || fail "cannot create a temporary folder: is /tmp full?"
	trap cleanup EXIT
	# Also when the reader has gone, and nobody reads the answer.
	trap 'exit 141' PIPE
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
}
cleanup() { rm -rf "$tmp"; }
# Output goes to files, not pipes: a daemon that a command starts would keep a pipe open.
quiet() {
	scratch
	"$@" >"$tmp/out" 2>&1 </dev/null
}
output() { cat "$tmp/out"; }
# step WHAT COMMAND...: makes a change. In check mode the change is only counted.
step() {
	what=$1
	shift
	say changed 1
	[ -z "$p_check" ] || return 0
	quiet "$@" || fail "$what: $(output)"
}
# not_yet WHAT: fails because something is missing. In check mode an earlier task
# may have been predicted to create it: then it is a warning, and the caller continues.
not_yet() {
	[ -n "$p_check" ] || fail "$1"
	say warn "$1 (check mode: assuming that an earlier task creates it)"
}
# replace PATH MODE: replaces a file with standard input, atomically. An existing
# file keeps its owner and mode; MODE is for a new file.
replace() {
	into=$(readlink -f "$1" 2>/dev/null) || into=$1
	aside=$(dirname "$into")/.kk-${kk_id:-$$}.tmp
	rm -f "$aside"
	if [ -e "$into" ]; then
		cp -p "$into" "$aside" || return 1
	else
		(umask 077 && : >"$aside") && chmod "$2" "$aside" || return 1
	fi
	if cat >"$aside" && mv -f "$aside" "$into"; then
		return 0
	fi
	rm -f "$aside"
	return 1
}
# fetch URL FILE: downloads with curl or wget, whichever the host has. p_insecure
# skips the check of certificates.
fetch() {
	if has curl; then
		quiet curl -fsSL ${p_insecure:+-k} -o "$2" "$1" && return
	elif has wget; then
		quiet wget ${p_insecure:+--no-check-certificate} -O "$2" "$1" && return
	else
		fail "cannot fetch $1: install curl or wget on the host"
	fi
	fail "fetch $1: $(output | tail -n 3)"
}
