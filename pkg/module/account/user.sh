# shellcheck shell=sh disable=SC2154
# The password's hash, if one is to be set, is the first line of standard input.
user_read() { # splits a line of passwd
	uid=${line#*:*:}
	gid=${uid#*:}
	comment=${gid#*:}
	home=${comment#*:}
	shell=${home#*:}
	uid=${uid%%:*} gid=${gid%%:*} comment=${comment%%:*} home=${home%%:*}
}
user_shadow() { # sets $hash and $expires (days)
	hash='' expires=''
	[ -r /etc/shadow ] || return 1
	while IFS= read -r entry || [ -n "$entry" ]; do
		[ "${entry%%:*}" = "$p_name" ] || continue
		hash=${entry#*:}
		expires=${hash#*:*:*:*:*:*:}
		expires=${expires%%:*} hash=${hash%%:*}
		return 0
	done </etc/shadow
	return 1
}
group_list() { if [ -z "$p_local" ] && has getent; then getent group; else cat /etc/group; fi; }
user_groups() { # sets $member: its supplementary groups, between commas
	member=,
	scratch
	group_list >"$tmp/groups"
	while IFS=: read -r entry _ number people; do
		[ "$number" != "$gid" ] || continue
		case ,$people, in *",$p_name,"*) member=$member$entry, ;; esac
	done <"$tmp/groups"
}
group_id() { # NAME-OR-NUMBER: sets $number
	found=$(account group "$1") || {
		not_yet "Group $1 does not exist"
		number=$1
		return
	}
	number=${found#*:*:}
	number=${number%%:*}
}
group_name() { found=$(account group "$1") && printf '%s\n' "${found%%:*}"; }
user_desired() { # sets $desired: the names of p_groups, between commas
	desired=,
	old_ifs=$IFS
	IFS=,
	for entry in $p_groups; do
		IFS=$old_ifs
		named=$(group_name "$entry") || {
			not_yet "Group $entry does not exist"
			named=$entry
		}
		desired=$desired$named,
		IFS=,
	done
	IFS=$old_ifs
}
trimmed() { trim=${1#,} && printf '%s' "${trim%,}"; }
user_differs() { # does p_groups differ from $member?
	extra='' lacking=''
	old_ifs=$IFS
	IFS=,
	for entry in ${desired#,}; do
		[ -n "$entry" ] || continue
		# The primary group counts as a group of the user.
		case $member in *",$entry,"*) ;; *) [ "$entry" = "$first" ] || lacking=$lacking$entry, ;; esac
	done
	for entry in ${member#,}; do
		[ -n "$entry" ] || continue
		case $desired in *",$entry,"*) ;; *) extra=$extra$entry, ;; esac
	done
	IFS=$old_ifs
	[ -n "$lacking" ] || { [ -n "$extra" ] && [ -z "$p_append" ]; }
}
set_password() { printf '%s:%s\n' "$p_name" "$1" | chpasswd -e >"$tmp/out" 2>&1 || fail "set the password of $p_name: $(output)"; }
user_lock() { # -L or -U
	if has usermod; then
		step "lock or unlock the password of $p_name" usermod "$1" "$p_name"
	else
		[ "$1" = -L ] && verb=-l || verb=-u
		step "lock or unlock the password of $p_name" passwd "$verb" "$p_name"
	fi
}
user_password() { # $1: is the user new?
	lock=''
	[ -z "$p_password_lock" ] || lock='!'
	if [ -n "$p_has_password" ] && { [ -n "$1" ] || [ "$p_update_password" = always ]; } && [ "${hash#!}" != "${secret#!}" ]; then
		say changed 1
		say changes password
		scratch
		[ -n "$p_check" ] || set_password "$lock${secret#"$lock"}"
		return
	fi
	case $hash in
	!*) [ -z "$p_no_password_lock" ] || [ "$hash" = '!' ] || user_lock -U ;;
	*) [ -z "$p_password_lock" ] || user_lock -L ;;
	esac
}
user_ageing() { # days: sixth to fourth field of /etc/shadow
	[ -n "$p_password_expire_min$p_password_expire_max$p_password_expire_warn" ] || return 0
	min='' max='' warn=''
	while IFS=: read -r entry _ _ min_of max_of warn_of _; do
		[ "$entry" != "$p_name" ] || min=$min_of max=$max_of warn=$warn_of
	done </etc/shadow
	set --
	[ -z "$p_password_expire_min" ] || [ "$p_password_expire_min" = "$min" ] || set -- "$@" -m "$p_password_expire_min"
	[ -z "$p_password_expire_max" ] || [ "$p_password_expire_max" = "$max" ] || set -- "$@" -M "$p_password_expire_max"
	[ -z "$p_password_expire_warn" ] || [ "$p_password_expire_warn" = "$warn" ] || set -- "$@" -W "$p_password_expire_warn"
	[ $# -gt 0 ] || return 0
	has chage || fail "password_expire_min, _max and _warn need chage, which the host does not have"
	step "set the password ageing of $p_name" chage "$@" "$p_name"
}
user_create() {
	if ! has useradd; then
		user_create_plain
		return
	fi
	set -- useradd
	[ -z "$p_uid" ] || set -- "$@" -u "$p_uid"
	[ -z "$p_non_unique" ] || set -- "$@" -o
	if [ -n "$p_group" ]; then
		group_id "$p_group"
		set -- "$@" -g "$number"
	elif account group "$p_name" >/dev/null; then
		set -- "$@" -N
	fi
	[ "$desired" = , ] || set -- "$@" -G "$(trimmed "$desired")"
	[ -z "${p_comment+1}" ] || set -- "$@" -c "$p_comment"
	[ -z "$p_home" ] || set -- "$@" -d "$p_home"
	[ -z "$p_shell" ] || set -- "$@" -s "$p_shell"
	[ -z "$p_expires" ] || set -- "$@" -e "$p_expires_date"
	[ -z "$p_system" ] || set -- "$@" -r
	[ -z "$p_umask" ] || set -- "$@" -K "UMASK=$p_umask"
	[ -z "$p_uid_min" ] || set -- "$@" -K "UID_MIN=$p_uid_min"
	[ -z "$p_uid_max" ] || set -- "$@" -K "UID_MAX=$p_uid_max"
	[ -z "$p_seuser" ] || set -- "$@" -Z "$p_seuser"
	if [ -n "$p_create_home" ]; then
		set -- "$@" -m
		[ -z "$p_skeleton" ] || set -- "$@" -k "$p_skeleton"
	else
		set -- "$@" -M
	fi
	step "create user $p_name" "$@" "$p_name"
}
user_create_plain() { # busybox
	has adduser || fail "the host has neither useradd nor adduser"
	[ -z "$p_non_unique$p_expires$p_skeleton$p_uid_min$p_uid_max$p_seuser" ] ||
		fail "non_unique, expires, skeleton, uid_min, uid_max and seuser need useradd, which the host does not have"
	set -- adduser -D
	[ -z "$p_uid" ] || set -- "$@" -u "$p_uid"
	[ -z "$p_group" ] || {
		named=$(group_name "$p_group") || {
			not_yet "Group $p_group does not exist"
			named=$p_group
		}
		set -- "$@" -G "$named"
	}
	[ -z "${p_comment+1}" ] || set -- "$@" -g "$p_comment"
	[ -z "$p_home" ] || set -- "$@" -h "$p_home"
	[ -z "$p_shell" ] || set -- "$@" -s "$p_shell"
	[ -z "$p_system" ] || set -- "$@" -S
	[ -n "$p_create_home" ] || set -- "$@" -H
	step "create user $p_name" "$@" "$p_name"
	[ -n "$p_check" ] || member_plain addgroup "$(trimmed "$desired")"
}
member_plain() { # addgroup|delgroup LIST
	verb=$1
	old_ifs=$IFS
	IFS=,
	for entry in $2; do
		IFS=$old_ifs
		step "change the groups of $p_name" "$verb" "$p_name" "$entry"
		IFS=,
	done
	IFS=$old_ifs
}
user_change() {
	set --
	[ -z "$p_uid" ] || [ "$p_uid" = "$uid" ] || set -- "$@" -u "$p_uid"
	[ -z "$p_uid" ] || [ "$p_uid" = "$uid" ] || [ -z "$p_non_unique" ] || set -- "$@" -o
	if [ -n "$p_group" ]; then
		group_id "$p_group"
		[ "$number" = "$gid" ] || set -- "$@" -g "$number"
	fi
	[ -z "${p_comment+1}" ] || [ "$p_comment" = "$comment" ] || set -- "$@" -c "$p_comment"
	if [ -n "$p_home" ] && [ "$p_home" != "$home" ]; then
		set -- "$@" -d "$p_home"
		[ -z "$p_move_home" ] || set -- "$@" -m
	fi
	[ -z "$p_shell" ] || [ "$p_shell" = "$shell" ] || set -- "$@" -s "$p_shell"
	[ -z "$p_expires" ] || [ "$p_expires_days" = "$expires" ] || set -- "$@" -e "$p_expires_date"
	if [ -n "${p_groups+1}" ] && user_differs; then
		if has usermod; then
			[ -z "$p_append" ] || set -- "$@" -a
			if [ -n "$p_append" ]; then set -- "$@" -G "$(trimmed "$lacking")"; else set -- "$@" -G "$(trimmed "$desired")"; fi
		else
			member_plain addgroup "${lacking%,}"
			[ -n "$p_append" ] || member_plain delgroup "${extra%,}"
		fi
	fi
	[ $# -gt 0 ] || return 0
	has usermod || fail "changing user $p_name needs usermod, which the host does not have"
	say changes "$*"
	step "change user $p_name" usermod "$@" "$p_name"
}
user_home() { # makes a home folder that is missing
	[ -n "$p_create_home" ] && [ -n "$home" ] && [ ! -e "$home" ] || return 0
	say changed 1
	[ -z "$p_check" ] || return 0
	quiet mkdir -p "$home" || fail "create $home: $(output)"
	from=${p_skeleton:-/etc/skel}
	[ ! -d "$from" ] || quiet cp -R "$from/." "$home" || fail "copy $from: $(output)"
	quiet chown -R "$uid:$gid" "$home" || fail "set the owner of $home: $(output)"
	mode=755
	if [ -n "$p_umask" ]; then
		mode=$(printf '%o' $((0777 & ~0$p_umask)))
	elif grep -q '^HOME_MODE[[:space:]]*0*700' /etc/login.defs 2>/dev/null; then
		mode=700
	fi
	chmod "$mode" "$home"
}
user_key() {
	[ -n "$p_generate_ssh_key" ] || return 0
	case $p_ssh_key_file in /*) key=$p_ssh_key_file ;; *) key=$home/$p_ssh_key_file ;; esac
	say ssh_key_file "$key"
	if [ ! -e "$key" ]; then
		has ssh-keygen || fail "generate_ssh_key needs ssh-keygen, which the host does not have"
		say changed 1
		[ -z "$p_check" ] || return 0
		dir=$(dirname "$key")
		if [ ! -d "$dir" ]; then
			quiet mkdir -m 700 "$dir" || fail "create $dir: $(output)"
			chown "$uid:$gid" "$dir"
		fi
		set -- ssh-keygen -q -N '' -t "$p_ssh_key_type" -C "$p_ssh_key_comment" -f "$key"
		[ -z "$p_ssh_key_bits" ] || set -- "$@" -b "$p_ssh_key_bits"
		quiet "$@" || fail "make an SSH key: $(output)"
		chown "$uid:$gid" "$key" "$key.pub"
	fi
	[ ! -r "$key.pub" ] || say ssh_public_key "$(cat "$key.pub")"
	[ ! -r "$key.pub" ] || say ssh_fingerprint "$(ssh-keygen -l -f "$key.pub" 2>/dev/null)"
}
user_remove() {
	if has userdel; then
		set -- userdel
		[ -z "$p_force" ] || set -- "$@" -f
		[ -z "$p_remove" ] || set -- "$@" -r
	else
		set -- deluser
		[ -z "$p_remove" ] || set -- "$@" --remove-home
	fi
	step "remove user $p_name" "$@" "$p_name"
}
user_tell() { # what the user is now
	line=$(account passwd "$p_name") || return 0
	user_read
	user_groups
	say uid "$uid"
	say group "$gid"
	say comment "$comment"
	say home "$home"
	say shell "$shell"
	say groups "$(trimmed "$member")"
}
user_was() {
	say was_uid "$uid"
	say was_group "$gid"
	say was_comment "$comment"
	say was_home "$home"
	say was_shell "$shell"
	say was_groups "$(trimmed "$member")"
}
user_present() {
	secret='' desired=,
	[ -z "$p_has_password" ] || IFS= read -r secret
	[ -z "${p_groups+1}" ] || user_desired
	if [ -n "$there" ]; then
		user_read
		user_groups
		first=$(group_name "$gid")
		user_was
		user_shadow || [ "$(id -u)" -eq 0 ] || [ -z "$p_has_password$p_password_lock$p_no_password_lock$p_expires$p_password_expire_min$p_password_expire_max$p_password_expire_warn" ] ||
			fail "reading /etc/shadow needs root: use become"
		user_change
		user_password ''
	else
		user_create
		hash='' home=$p_home
		[ -n "$p_check" ] || user_shadow
		user_password 1
		[ -z "$p_check" ] || return 0
	fi
	user_ageing
	[ -n "$p_check" ] || { line=$(account passwd "$p_name") && user_read; }
	user_home
	user_key
	user_tell
}
user_main() {
	there=''
	if line=$(account passwd "$p_name") && [ "${line%%:*}" = "$p_name" ]; then
		there=1
	fi
	[ -z "$there" ] || say was present
	if [ "$p_state" = absent ]; then
		[ -z "$there" ] || user_remove
		return
	fi
	user_present
}
