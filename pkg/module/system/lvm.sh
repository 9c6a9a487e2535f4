# shellcheck shell=sh disable=SC2154
# What the modules lvg and lvol do.
lvm_field() { # pvs|vgs|lvs FIELDS [NAME]: sizes in bytes, without units
	"$1" --noheadings --nosuffix --units b --separator '|' -o "$2" ${3:+"$3"} 2>"$tmp/out" </dev/null | sed 's/^ *//'
}
lvg_has() { # PV: whether it is among the words after it
	wanted=$1
	shift
	for other; do
		[ "$other" != "$wanted" ] || return 0
	done
	return 1
}
lvg_main() { # PV...
	if [ -n "$p_check" ] && [ "$p_state" = present ] && ! has vgs; then # an earlier task would install lvm2
		say changed 1
		return
	fi
	need vgs
	scratch
	there=$(lvm_field vgs vg_name "$p_vg")
	if [ "$p_state" = absent ]; then
		[ -n "$there" ] || return 0
		[ "$(lvm_field vgs lv_count "$p_vg")" = 0 ] || [ -n "$p_force" ] ||
			fail "Cannot remove non-empty volume group $p_vg without force=true"
		step "remove volume group $p_vg" vgremove ${p_force:+--force --yes} "$p_vg"
		return
	fi
	for pv; do
		[ -b "$pv" ] || [ -n "$p_check" ] || fail "Device $pv not found."
		owner=$(lvm_field pvs vg_name "$pv")
		[ -z "$owner" ] || [ "$owner" = "$p_vg" ] || fail "Device $pv is already in $owner volume group."
	done
	if [ -z "$there" ]; then
		for pv; do
			[ -n "$(lvm_field pvs pv_name "$pv")" ] || lvg_pv "$pv"
		done
		# shellcheck disable=SC2086
		step "make volume group $p_vg" vgcreate $p_vg_options -s "${p_pesize:-4}" "$p_vg" "$@"
		return
	fi
	lvg_members "$@"
}
lvg_pv() {
	# shellcheck disable=SC2086
	step "make physical volume $1" pvcreate $p_pv_options -f -y "$1"
}
lvg_members() { # PV...
	have=$(lvm_field pvs vg_name,pv_name | sed -n "s/^$p_vg|//p")
	real=''
	for pv; do
		real="$real $(readlink -f "$pv")"
	done
	for pv; do
		# shellcheck disable=SC2086
		if lvg_has "$pv" $have || lvg_has "$(readlink -f "$pv")" $have; then
			[ -z "$p_pvresize" ] || lvg_resize "$pv"
			continue
		fi
		[ -n "$(lvm_field pvs pv_name "$pv")" ] || lvg_pv "$pv"
		step "add $pv to $p_vg" vgextend "$p_vg" "$pv"
	done
	[ -n "$p_remove_extra_pvs" ] || return 0
	for pv in $have; do
		# shellcheck disable=SC2086
		lvg_has "$pv" "$@" || lvg_has "$(readlink -f "$pv")" $real || step "take $pv out of $p_vg" vgreduce ${p_force:+--force} "$p_vg" "$pv"
	done
}
lvg_resize() {
	IFS='|' read -r dev_size pv_size pe_start extent <<END
$(lvm_field pvs dev_size,pv_size,pe_start,vg_extent_size "$1")
END
	[ -n "$extent" ] && [ $((dev_size - pe_start - pv_size)) -ge "$extent" ] || return 0
	step "resize $1" pvresize "$1"
}
lvol_look() { # says what the group and the volume are like
	[ -z "$p_check" ] || has vgs || fail "Volume group $p_vg does not exist."
	need vgs
	scratch
	group=$(lvm_field vgs vg_name,vg_size,vg_free,vg_extent_size "$p_vg")
	[ -n "$group" ] || fail "Volume group $p_vg does not exist."
	say group "$group"
	lvm_field lvs lv_name,lv_size,lv_active,origin_size,pool_lv "$p_vg" | while IFS= read -r line; do
		say volume "$line"
	done
}
lvol_act() { # COMMAND...
	scratch
	need "$1"
	step "$p_what" "$@"
}
