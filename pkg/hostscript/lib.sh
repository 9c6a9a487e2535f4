# shellcheck shell=sh disable=SC2034,SC2154
# Every script begins with this. Arguments key=value become variables p_key;
# what follows -- stays as positional parameters. Answers are fields
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
scratch() { # a folder for outputs, removed at the end
	[ -z "$tmp" ] || return 0
	tmp=$(mktemp -d) || fail "make a temporary folder: is /tmp full?"
	trap cleanup EXIT
	# Also when who asked is gone, and nobody reads the answer.
	trap 'exit 141' PIPE
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
}
cleanup() { rm -rf "$tmp"; }
# Outputs go to files, not pipes: a daemon that a command starts would keep a pipe open.
quiet() {
	scratch
	"$@" >"$tmp/out" 2>&1 </dev/null
}
output() { cat "$tmp/out"; }
# step WHAT COMMAND...: a change. In check mode it is only counted.
step() {
	what=$1
	shift
	say changed 1
	[ -z "$p_check" ] || return 0
	quiet "$@" || fail "$what: $(output)"
}
# not_yet WHAT: what is missing fails the task. In check mode something before
# it may only have been predicted: then it is a warning, and the caller goes on.
not_yet() {
	[ -n "$p_check" ] || fail "$1"
	say warn "$1 (check mode: assuming that a task before makes it)"
}
# replace PATH MODE: puts standard input in its place, atomically; owner and
# mode of what was there stay. MODE is for a new file.
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
# fetch URL FILE: with curl or wget, whichever the host has. p_insecure passes
# over certificates.
fetch() {
	if has curl; then
		quiet curl -fsSL ${p_insecure:+-k} -o "$2" "$1" && return
	elif has wget; then
		quiet wget ${p_insecure:+--no-check-certificate} -O "$2" "$1" && return
	else
		fail "there is neither curl nor wget on the host to fetch $1"
	fi
	fail "fetch $1: $(output | tail -n 3)"
}
