# shellcheck shell=sh disable=SC2154
apache_ctl() {
	for ctl in apache2ctl apachectl; do
		! has "$ctl" || return 0
	done
	not_yet "Neither of apache2ctl nor apachectl found. At least one apache control binary is necessary."
	return 1
}
apache_enabled() { # whether the server loads the module
	"$ctl" -M >"$tmp/modules" 2>"$tmp/errors" </dev/null || {
		bad="Error executing $ctl: $(cat "$tmp/errors")"
		[ -n "$p_ignore_configcheck" ] || fail "$bad"
		case $bad$p_name in
		*AH00534*mpm_*) bad=${p_warn_mpm_absent:+"No MPM module loaded! apache2 reload AND other module actions will fail if no MPM module is loaded immediately."} ;;
		esac
		[ -z "$bad" ] || say warn "$bad"
		return 1
	}
	grep -qF " $p_identifier" "$tmp/modules"
}
apache_as_wanted() {
	if apache_enabled; then [ -n "$present" ]; else [ -z "$present" ]; fi
}
apache_main() {
	scratch
	present=''
	[ "$p_state" = absent ] || present=1
	if ! apache_ctl; then
		[ -z "$present" ] || say changed 1
		return
	fi
	if [ "$p_name$present" = cgi1 ] && "$ctl" -V 2>/dev/null | grep -q 'threaded: *yes'; then
		fail "Your MPM seems to be threaded. No automatic actions on module cgi possible."
	fi
	! apache_as_wanted || return 0
	say changed 1
	[ -z "$p_check" ] || return 0
	tool=a2enmod
	[ -n "$present" ] || tool=a2dismod
	has "$tool" || fail "$tool not found. Perhaps this system does not use $tool to manage apache"
	[ -n "$present" ] || [ -z "$p_force" ] || set -- -f
	"$tool" "$@" "$p_name" >"$tmp/stdout" 2>"$tmp/stderr" </dev/null
	rc=$?
	! apache_as_wanted || return 0
	say rc "$rc"
	say stdout "$(cat "$tmp/stdout")"
	say stderr "$(cat "$tmp/stderr")"
	fail "$tool $p_name did not do it: $(cat "$tmp/stdout" "$tmp/stderr")"
}
