# shellcheck shell=sh disable=SC2154
# A package manager in an empty root: what is installed on the machine has no part in it.
# runs DISTRIBUTION: does the machine run it, ID-VERSION or ID-MAJOR?
runs() {
	[ -r /etc/os-release ] || return 1
	# shellcheck disable=SC1091
	is=$(. /etc/os-release && printf '%s-%s' "$ID" "$VERSION_ID")
	[ "$1" = "$is" ] || [ "$1" = "${is%.*}" ]
}
# empty_root: makes the directory, temporary without p_dir
empty_root() {
	umask 077
	if [ -z "$p_dir" ]; then
		p_dir=$(mktemp -d) || fail "cannot create a temporary folder: is /tmp full?"
		say dir "$p_dir"
	fi
	root=$p_dir
	mkdir -p "$root/fetched" || fail "create $root"
}
# choose_sources: sets lines, none for those of the machine
choose_sources() {
	lines=$p_sources keyring=$p_keyring
	if [ -n "$p_remote" ]; then
		runs "$p_distribution" || fail "the host runs ${is:-another system}, not $p_distribution: choose another host"
		lines=''
	elif [ -z "$lines" ]; then
		keyring=''
		runs "$p_distribution" && return
		lines=$p_known_sources keyring=$p_known_keyring
		[ -n "$lines" ] || fail "no sources of packages are known: set artifact.repositories.$p_distribution.sources, or \
resolve on a host that runs it with --packages-on HOST"
	fi
	[ -z "$keyring" ] || [ -r "$keyring" ] ||
		fail "the keyring $keyring cannot be read: install the package that has it, set \
artifact.repositories.$p_distribution.keyring, or resolve on a host with --packages-on HOST"
}
