# shellcheck shell=sh disable=SC2034,SC2154
# Every script of this package begins with this. Arguments key=value become
# variables p_key; answers are fields "key=value" that end in NUL.
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
while [ $# -gt 0 ]; do
	eval "p_${1%%=*}=\${1#*=}"
	shift
done
say() { printf '%s=%s\0' "$1" "$2"; }
tell() { # KEY FILE: a field with what the file holds
	printf '%s=' "$1"
	cat "$2"
	printf '\0'
}
has() { command -v "$1" >/dev/null 2>&1; }
umask 077
tmp=$(mktemp -d) || {
	say fail "make a temporary folder: is /tmp full?"
	exit 0
}
trap 'rm -rf "$tmp"' EXIT
# Also when who asked is gone, and nobody reads the answer.
trap 'exit 141' PIPE
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
# missing PROGRAM: answers and ends if the host lacks it, or the kubeconfig.
missing() {
	has "$1" || {
		say missing "$1"
		exit 0
	}
	config=${p_kubeconfig:-$KUBECONFIG}
	case $config in '' | *:*) return ;; esac
	[ -r "$config" ] || {
		say missing "$config"
		exit 0
	}
}
