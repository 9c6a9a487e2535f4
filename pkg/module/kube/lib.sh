# shellcheck shell=sh disable=SC2034,SC2154
# What the scripts of this package share, on top of pkg/hostscript. Their outputs
# lie in a folder 0700.
tell() { # KEY FILE: a field with what the file holds
	printf '%s=' "$1"
	cat "$2"
	printf '\0'
}
umask 077
scratch
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
