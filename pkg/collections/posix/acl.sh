# shellcheck shell=sh disable=SC2154
# What the module acl does.
acl_list() { # the entries of the path, one on a line; of the default ones, if those are meant
	physical=--physical
	[ -z "$p_follow" ] || physical=''
	quiet getfacl --absolute-names --omit-header ${p_default:+--default} ${p_recursive:+--recursive} ${physical:+"$physical"} -- "$p_path" || fail "$(output)"
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
