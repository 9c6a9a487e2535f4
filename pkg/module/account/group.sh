# shellcheck shell=sh disable=SC2154
group_make() {
	if has groupadd; then
		set -- groupadd
		[ -z "$p_system" ] || set -- "$@" -r
		[ -z "$p_gid" ] || set -- "$@" -g "$p_gid"
		[ -z "$p_gid_min" ] || set -- "$@" -K "GID_MIN=$p_gid_min"
		[ -z "$p_gid_max" ] || set -- "$@" -K "GID_MAX=$p_gid_max"
		[ -z "$p_non_unique" ] || set -- "$@" -o
	elif has addgroup; then
		[ -z "$p_non_unique$p_gid_min$p_gid_max" ] || fail "non_unique, gid_min and gid_max need groupadd, which the host does not have"
		set -- addgroup
		[ -z "$p_system" ] || set -- "$@" -S
		[ -z "$p_gid" ] || set -- "$@" -g "$p_gid"
	else
		fail "the host has neither groupadd nor addgroup"
	fi
	step "create group $p_name" "$@" "$p_name"
}
group_change() {
	has groupmod || fail "changing the gid of group $p_name needs groupmod, which the host does not have"
	set -- groupmod -g "$p_gid"
	[ -z "$p_non_unique" ] || set -- "$@" -o
	step "change group $p_name" "$@" "$p_name"
}
group_remove() {
	if has groupdel; then set -- groupdel ${p_force:+-f}; else set -- delgroup; fi
	step "remove group $p_name" "$@" "$p_name"
}
group_main() {
	gid=''
	if line=$(account group "$p_name") && [ "${line%%:*}" = "$p_name" ]; then
		gid=${line#*:*:}
		gid=${gid%%:*}
		say was "$gid"
	fi
	if [ "$p_state" = absent ]; then
		[ -z "$gid" ] || group_remove
		return
	fi
	if [ -z "$gid" ]; then
		group_make
	elif [ -n "$p_gid" ] && [ "$gid" != "$p_gid" ]; then
		group_change
	fi
	if [ -n "$p_check" ]; then
		gid=${p_gid:-$gid}
	elif line=$(account group "$p_name"); then
		gid=${line#*:*:}
		gid=${gid%%:*}
	fi
	say gid "$gid"
}
