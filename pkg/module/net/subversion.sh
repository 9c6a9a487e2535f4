# shellcheck shell=sh disable=SC2154,SC2088
# The script of the module subversion. The password is in the environment
# as KK_PASSWORD, and is passed to svn on standard input.
svn_() { # SUBCOMMAND...: its output is in the scratch folder
	scratch
	verb=$1
	shift
	[ -n "$p_validate_certs" ] || set -- --trust-server-cert "$@"
	set -- "$verb" --non-interactive --no-auth-cache ${p_username:+--username "$p_username"} "$@"
	if [ -n "$KK_PASSWORD" ]; then
		printf '%s\n' "$KK_PASSWORD" | "${p_executable:-svn}" "$@" --password-from-stdin >"$tmp/out" 2>&1
	else
		"${p_executable:-svn}" "$@" >"$tmp/out" 2>&1 </dev/null
	fi
}
svn_do() { svn_ "$@" || fail "$(output)"; }
svn_line() { output | sed -n "/^$1 *:/{p;q;}"; }
svn_revision() { # NAME: prints revision and address of the folder
	svn_do info "$p_dest"
	say "$1" "$(svn_line Revision)"
	say "$1" "$(svn_line URL)"
}
svn_touched() { output | grep -q '^[ABDUCGE][[:space:]]'; }
svn_edited() {
	svn_do status --quiet --ignore-externals "$p_dest"
	output | grep -q '^[^?X]'
}
svn_refuse_edits() { fail 'ERROR: modified files exist in the repository.'; }
# An existing working copy: it is switched to the address and the revision.
svn_follow() {
	edited=''
	! svn_edited || edited=1
	if [ -n "$p_check" ]; then
		[ -z "$edited" ] || [ -n "$p_force" ] || svn_refuse_edits
		svn_do info "$p_dest"
		now=$(svn_line Revision) url=$(svn_line URL)
		svn_do info -r "$p_revision" "$KK_REPO"
		say before "$now"
		say after "$(svn_line Revision)"
		[ "$edited$now$url" = "$(svn_line Revision)$(svn_line URL)" ] || say changed 1
		return
	fi
	svn_revision before
	if [ -n "$p_switch" ]; then
		svn_do switch --ignore-ancestry --revision "$p_revision" "$KK_REPO" "$p_dest"
		! svn_touched || say changed 1
	fi
	if [ -n "$edited" ]; then
		[ -n "$p_force" ] || svn_refuse_edits
		svn_do revert -R "$p_dest"
		say changed 1
	fi
	svn_do update -r "$p_revision" "$p_dest"
	! svn_touched || say changed 1
	svn_revision after
}
subversion_main() {
	need "${p_executable:-svn}"
	case $p_dest in '~/'*) p_dest=$HOME/${p_dest#??} ;; esac
	if [ -z "$p_checkout$p_update" ] && [ -z "$p_export" ]; then
		svn_do info "$KK_REPO"
		say after "$(svn_line Revision)"
		return
	fi
	if [ -n "$p_export" ] || ! [ -e "$p_dest" ]; then
		if [ -n "$p_check" ]; then
			say changed 1
		elif [ -n "$p_export" ]; then
			say changed 1
			svn_do export ${p_force:+--force} -r "$p_revision" "$KK_REPO" "$p_dest"
		elif [ -n "$p_checkout" ]; then
			say changed 1
			svn_do checkout -r "$p_revision" "$KK_REPO" "$p_dest"
			svn_revision after
		fi
	elif svn_ info "$p_dest"; then
		[ -z "$p_update" ] || svn_follow
	elif [ -n "$p_in_place" ]; then
		say changed 1
		[ -z "$p_check" ] || return 0
		svn_do checkout --force -r "$p_revision" "$KK_REPO" "$p_dest"
		if [ -n "$p_force" ] && svn_edited; then
			svn_do revert -R "$p_dest"
		fi
		svn_revision after
	else
		fail "ERROR: $p_dest folder already exists, but its not a subversion repository."
	fi
}
