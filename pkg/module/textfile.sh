# shellcheck shell=sh disable=SC2154
textfile_read() {
	[ -e "$p_path" ] || return 0
	[ -f "$p_path" ] || fail "$p_path is not a file"
	text=$(cat "$p_path" && printf x) || fail "read $p_path"
	say text "$text"
	say mode "$(stat -L -c %a "$p_path")"
	say owner "$(stat -L -c '%u %U' "$p_path")"
	say group "$(stat -L -c '%g %G' "$p_path")"
}
textfile_write() { # the new text is on standard input
	if [ -n "$p_backup" ] && [ -e "$p_path" ]; then
		kept=$p_path.${kk_id:-$$}.$(date +%Y-%m-%d@%H:%M:%S)~
		quiet cp -p "$p_path" "$kept" || fail "back up $p_path: $(output)"
		say backup "$kept"
	fi
	if [ -n "$p_remove" ]; then
		quiet rm -f "$p_path" || fail "remove $p_path: $(output)"
		return
	fi
	if [ -n "$p_write" ]; then
		[ -z "$p_folder" ] || quiet mkdir -p "$(dirname "$p_path")" || fail "create the folder of $p_path: $(output)"
		replace "$p_path" "${p_new_mode:-644}" || fail "write $p_path"
	fi
	[ -z "$p_owner" ] || quiet chown "$p_owner" "$p_path" || fail "set the owner of $p_path: $(output)"
	[ -z "$p_group" ] || quiet chgrp "$p_group" "$p_path" || fail "set the group of $p_path: $(output)"
	[ -z "$p_mode" ] || quiet chmod "$p_mode" "$p_path" || fail "set the mode of $p_path: $(output)"
}
