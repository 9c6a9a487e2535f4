# shellcheck shell=sh disable=SC2154
# What the modules that keep files of keys and certificates do to them.
pki_dress() {
	[ -z "$p_owner" ] || step "set the owner of $p_path" chown "$p_owner" "$p_path"
	[ -z "$p_group" ] || step "set the group of $p_path" chgrp "$p_group" "$p_path"
	[ -z "$p_mode" ] || step "set the mode of $p_path" chmod "$p_mode" "$p_path"
}
pki_remove() {
	if [ -n "$p_backup" ]; then
		copy=$p_path.${kk_id:-$$}.$(date +%Y-%m-%d@%H:%M:%S)~
		step "back up $p_path" cp -p "$p_path" "$copy"
		say backup "$copy"
	fi
	step "remove $p_path" rm -f "$p_path"
}
