# shellcheck shell=sh disable=SC2154,SC2086
# The patch is the file p_src if p_remote_src is set, else on standard input.
patch_main() {
	need patch
	[ -z "$p_remote_src" ] || [ -r "$p_src" ] || fail "src $p_src doesn't exist or not readable"
	scratch
	if [ -n "$p_remote_src" ]; then
		cat "$p_src"
	else
		cat
	fi >"$tmp/patch" || fail "write a temporary file"
	[ -z "$p_dest" ] || [ -w "$p_dest" ] || fail "dest $p_dest doesn't exist or not writable"
	[ -d "$p_basedir" ] || fail "basedir $p_basedir doesn't exist"
	back=--reverse forth=
	[ "$p_state" = present ] || back='' forth=--reverse
	# What can be undone is done. --force asks nothing, and goes no other way by itself.
	if patch_try --dry-run --force $back; then
		return
	fi
	# A dry run first: of several files none is to change if one cannot.
	patch_try --dry-run --forward --batch $forth || fail "$(output)"
	keep=
	[ -z "$p_backup" ] || keep='--backup --version-control=numbered'
	step "apply the patch" patch_try --forward --batch $forth $keep
}
patch_try() {
	quiet patch --quiet --reject-file=- "--strip=$p_strip" "--directory=$p_basedir" "--input=$tmp/patch" \
		${p_binary:+--binary} ${p_ignore_whitespace:+--ignore-whitespace} "$@" ${p_dest:+"$p_dest"}
}
