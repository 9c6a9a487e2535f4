# shellcheck shell=sh disable=SC2154
sudoers_validate() { # the rule is on standard input
	if ! has visudo; then
		[ -z "$p_required" ] || fail 'Failed to find required executable "visudo"'
		return 0
	fi
	scratch
	visudo -c -f - >"$tmp/out" 2>&1 || fail "Failed to validate sudoers rule: $(output)"
}
