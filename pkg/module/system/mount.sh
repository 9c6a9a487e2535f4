# shellcheck shell=sh disable=SC2154
mount_read() {
	[ ! -e "$p_fstab" ] || say text "$(cat "$p_fstab" && printf x)"
	[ ! -e "$p_fstab" ] || say exists 1
	say mounts "$(cat /proc/self/mountinfo)"
	case $p_src in
	*=*) source=$(findfs "$p_src" 2>/dev/null) ;;
	*) source=$p_src ;;
	esac
	[ ! -e "$source" ] || say source "$(readlink -f "$source")"
	[ ! -b "$source" ] || say device "$(stat -Lc '%t:%T' "$source")"
	[ -z "$source" ] || [ "$(stat -L -c %d:%i "$source" 2>&1)" != "$(stat -L -c %d:%i "$p_path")" ] || say same 1
	say real "$(cd "$p_path" 2>/dev/null && pwd -P)"
	[ ! -d "$p_path" ] || say folder 1
	[ ! -e "$p_path" ] || say there 1
}
mount_do() { quiet "$@" || fail "Error $p_verb $p_path: $(output)"; }
mount_tab() { # ARGS...: mount with the table of the task
	[ "$p_fstab" = /etc/fstab ] || set -- -T "$p_fstab" "$@"
	mount_do mount "$@"
}
mount_write() {
	[ -n "$p_write" ] || return 0
	if [ -n "$p_backup" ] && [ -e "$p_fstab" ]; then
		kept=$p_fstab.${kk_id:-$$}.$(date +%Y-%m-%d@%H:%M:%S)~
		cp -p "$p_fstab" "$kept" || fail "back up $p_fstab"
		say backup "$kept"
	fi
	replace "$p_fstab" 644 || fail "write $p_fstab"
}
mount_restore() { # a failed mount must not leave a line in the table
	[ -n "$p_write" ] || return 0
	printf '%s' "$p_old" | replace "$p_fstab" 644
}
mount_new() {
	quiet mkdir -p "$p_path" || fail "Error making dir $p_path: $(output)"
	if [ "$p_fstab" = /etc/fstab ]; then set -- mount "$p_path"; else set -- mount -T "$p_fstab" "$p_path"; fi
	quiet "$@" || {
		said=$(output)
		mount_restore
		fail "Error mounting $p_path: $said"
	}
}
mount_act() { # a new table is on standard input
	p_verb=mounting
	case $p_action in
	mount)
		mount_write
		mount_new
		;;
	swap) # another source: unmount the old one first
		mount_do umount "$p_path"
		mount_write
		mount_new
		;;
	remount)
		mount_write
		p_verb=remounting
		quiet mount -o remount"${p_opts:+,$p_opts}" "$p_path" && return
		mount_do umount "$p_path"
		mount_tab "$p_path"
		;;
	ephemeral)
		quiet mkdir -p "$p_path" || fail "Error making dir $p_path: $(output)"
		if [ -n "$p_opts" ]; then set -- -o "$p_opts"; else set --; fi
		mount_do mount -t "$p_fstype" "$@" -- "$p_src" "$p_path"
		;;
	umount)
		p_verb=unmounting
		mount_do umount "$p_path"
		mount_write
		;;
	*) mount_write ;;
	esac
	if [ -n "$p_rmdir" ] && [ -d "$p_path" ]; then
		quiet rmdir "$p_path" || fail "Error rmdir $p_path: $(output)"
	fi
}
