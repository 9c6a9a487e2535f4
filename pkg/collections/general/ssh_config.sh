# shellcheck shell=sh disable=SC2034,SC2154
# $p_user is whose file it is, $p_path the file or nothing for the usual one.
ssh_config_find() {
	gid=
	p_path=${p_path:-/etc/ssh/ssh_config}
	[ -n "$p_user" ] || return 0
	entry=$(account passwd "$p_user") || {
		not_yet "Failed to lookup user $p_user: there is no such user"
		entry=$p_user:x:0:0::/home/$p_user:
	}
	rest=${entry#*:*:*:}
	gid=${rest%%:*}
	rest=${rest#*:*:}
	p_path=${rest%%:*}/.ssh/config
}
ssh_config_read() {
	ssh_config_find
	say path "$p_path"
	textfile_read
	case $p_identity in
	'') return 0 ;;
	/*) ;;
	*) p_identity=$(dirname "$p_path")/$p_identity ;;
	esac
	[ -e "$p_identity" ] || not_yet "IdentityFile $p_identity does not exist"
}
ssh_config_write() { # the new text is on standard input
	ssh_config_find
	folder=$(dirname "$p_path")
	if [ ! -d "$folder" ]; then
		quiet mkdir -p "$folder" || fail "create $folder: $(output)"
		[ -z "$p_user" ] || quiet chown "$p_user:$gid" "$folder" || fail "set the owner of $folder: $(output)"
		[ "$p_path" = /etc/ssh/ssh_config ] || quiet chmod 700 "$folder" || fail "set the mode of $folder: $(output)"
	fi
	p_owner=$p_user
	p_group=${p_group:-$gid}
	p_mode=600
	[ "$p_path" != /etc/ssh/ssh_config ] || p_mode=644
	textfile_write
}
