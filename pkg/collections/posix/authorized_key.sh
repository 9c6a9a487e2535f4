# shellcheck shell=sh disable=SC2154
# $p_user is the account, $p_path the file or nothing for the usual one.
authorized_key_find() {
	entry=$(account passwd "$p_user") || {
		not_yet "Failed to lookup user $p_user: there is no such user"
		entry=$p_user:x:0:0::/home/$p_user:
	}
	rest=${entry#*:*:}
	uid=${rest%%:*}
	rest=${rest#*:}
	gid=${rest%%:*}
	rest=${rest#*:*:}
	home=${rest%%:*}
	file=${p_path:-$home/.ssh/authorized_keys}
}
authorized_key_read() {
	authorized_key_find
	say file "$file"
	if [ -e "$file" ]; then
		text=$(cat "$file" && printf x) || fail "read $file"
		say text "$text"
	else
		quiet ls -d "$file" || case $(output) in *'Permission denied'*) fail "read $file: a folder of it may not be searched" ;; esac
	fi
	case $p_url in
	'') ;;
	file://*)
		[ -r "${p_url#file://}" ] || fail "Error getting key from: $p_url"
		say key "$(cat "${p_url#file://}")"
		;;
	*)
		scratch
		fetch "$p_url" "$tmp/key"
		say key "$(cat "$tmp/key")"
		;;
	esac
}
authorized_key_write() { # the new text is on standard input
	authorized_key_find
	folder=$(dirname "$file")
	if [ -n "$p_manage_dir" ]; then
		quiet mkdir -p "$folder" || fail "create $folder: $(output)"
		quiet chmod 700 "$folder" || fail "set the mode of $folder: $(output)"
		quiet chown "$uid:$gid" "$folder" || fail "set the owner of $folder: $(output)"
	elif [ ! -d "$folder" ]; then
		fail "there is no folder $folder on the host: manage_dir makes it"
	fi
	into=$file
	[ -z "$p_follow" ] || into=$(readlink -f "$file") || into=$file
	aside=$(dirname "$into")/.kk-${kk_id:-$$}.tmp
	rm -f "$aside"
	(umask 077 && cat >"$aside") || {
		rm -f "$aside"
		fail "write $aside"
	}
	if quiet chown "$uid:$gid" "$aside" && quiet chmod "$(authorized_key_mode)" "$aside" && quiet mv -f "$aside" "$into"; then
		return
	fi
	rm -f "$aside"
	fail "write $into: $(output)"
}
# A file that exists keeps its mode, but nobody else may write it.
authorized_key_mode() {
	mode=600
	[ ! -e "$into" ] || mode=$(stat -c %a "$into") || mode=600
	printf %s "$mode"
}
