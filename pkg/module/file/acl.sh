# shellcheck shell=sh disable=SC2154
# What the modules acl and xattr do.
acl_list() { # the entries of the path, one on a line; of the default ones, if those are meant
	# shellcheck disable=SC2086
	quiet getfacl --absolute-names --omit-header ${p_default:+--default} ${p_recursive:+--recursive} $p_physical -- "$p_path" || fail "$(output)"
	output
}
acl_main() { # OPTION...: of setfacl
	[ -e "$p_path" ] || [ -h "$p_path" ] || fail "Path not found or not accessible: $p_path"
	need getfacl
	before=$(acl_list) || {
		printf '%s' "$before"
		exit 0
	}
	say before "$before"
	if [ $# -gt 0 ]; then
		need setfacl
		# A line of --test that ends in *,* is a file that stays as it is.
		scratch
		setfacl --test "$@" -- "$p_path" >"$tmp/out" 2>"$tmp/err" </dev/null || {
			say rc "$?"
			say cmd "setfacl --test $* -- $p_path"
			say stdout "$(output)"
			say stderr "$(cat "$tmp/err")$nl"
			fail "$(cat "$tmp/err")"
		}
		if output | grep -qv '\*,\*$'; then
			step "set the ACL of $p_path" setfacl "$@" -- "$p_path"
		fi
	fi
	say after "$(acl_list)"
}
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
