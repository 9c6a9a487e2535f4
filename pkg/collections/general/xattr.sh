# shellcheck shell=sh disable=SC2154
# What the module xattr does.
xattr_main() {
	[ -e "$p_path" ] || [ -h "$p_path" ] || fail "path not found or not accessible!"
	need getfattr
	quiet getfattr --absolute-names ${p_no_follow:+-h} -d -m - -- "$p_path" || fail "$(output)"
	say before "$(output)"
	[ "$p_state" != read ] || return 0
	need setfattr
	if quiet getfattr --absolute-names ${p_no_follow:+-h} --only-values -n "$p_key" -- "$p_path"; then
		[ "$p_state" = absent ] || [ "$(cat "$tmp/out" && echo x)" != "${p_value}x" ] || return 0
		[ "$p_state" = present ] || {
			step "remove $p_key of $p_path" setfattr ${p_no_follow:+-h} -x "$p_key" -- "$p_path"
			return
		}
	elif [ "$p_state" = absent ]; then
		return
	fi
	step "set $p_key of $p_path" setfattr ${p_no_follow:+-h} -n "$p_key" -v "$p_value" -- "$p_path"
	[ -n "$p_check" ] || quiet getfattr --absolute-names ${p_no_follow:+-h} -d -m - -- "$p_path" && say before "$(output)"
}
