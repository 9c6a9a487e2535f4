# shellcheck shell=sh disable=SC2016,SC2154
dpkg_selections_main() {
	has dpkg-query || fail "dpkg is not installed on the host"
	before=$(dpkg-query -W -f '${db:Status-Want}\n' -- "$p_name" 2>/dev/null | head -n 1)
	[ "$before" != unknown ] || before=''
	[ -n "$before" ] || {
		not_yet "Failed to find package '$p_name' to perform selection '$p_selection'."
		before='not present'
	}
	say before "$before"
	[ "$before" != "$p_selection" ] || return 0
	say changed 1
	[ -z "$p_check" ] || return 0
	scratch
	printf '%s %s\n' "$p_name" "$p_selection" | dpkg --set-selections >"$tmp/out" 2>&1 || fail "select: $(output)"
}
