# shellcheck shell=sh disable=SC2154
# What the module xattr does.
xattr_main() {
	[ -e "$p_path" ] || [ -h "$p_path" ] || fail "path not found or not accessible!"
	need getfattr
	[ -n "$p_follow" ] || set -- -h
	quiet getfattr --absolute-names "$@" -d -m - -- "$p_path" || fail "$(output)"
	say before "$(output)"
	case $p_state in read | all | keys) return 0 ;; esac
	need setfattr
	if quiet getfattr --absolute-names "$@" --only-values -n "$p_key" -- "$p_path"; then
		[ "$p_state" = absent ] || [ "$(cat "$tmp/out" && echo x)" != "${p_value}x" ] || return 0
		[ "$p_state" = present ] || {
			step "remove $p_key of $p_path" setfattr "$@" -x "$p_key" -- "$p_path"
			return
		}
	elif [ "$p_state" = absent ]; then
		return
	fi
	step "set $p_key of $p_path" setfattr "$@" -n "$p_key" -v "$p_value" -- "$p_path"
	[ -n "$p_check" ] || quiet getfattr --absolute-names "$@" -d -m - -- "$p_path" && say before "$(output)"
}
