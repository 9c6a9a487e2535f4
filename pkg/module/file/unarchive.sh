# shellcheck shell=sh disable=SC2154
# An archive at an address, fetched into a folder of its own.
unarchive_fetch() {
	has curl || has wget || return 0
	scratch
	fetch "$p_url" "$tmp/fetched"
	dir=$(mktemp -d "${TMPDIR:-/tmp}/kk-XXXXXXXX") || fail "make a temporary folder: is /tmp full?"
	mv "$tmp/fetched" "$dir/$p_name" || fail "keep $p_name in $dir"
	say fetched "$dir/$p_name"
}
unarchive_drop() {
	rm -f -- "$p_fetched"
	rmdir -- "${p_fetched%/*}"
}
