# shellcheck shell=sh disable=SC2154,SC2086
# Services of hosts without systemd. $p_arguments are arguments of the init script.
service_pattern() { # is a process running with $p_pattern in its command line?
	ps -ef 2>/dev/null >"$tmp/ps" || ps w >"$tmp/ps" 2>/dev/null || ps >"$tmp/ps"
	while IFS= read -r process; do
		case $process in
		*"p_pattern="*) ;; # this script
		*"$p_pattern"*) return 0 ;;
		esac
	done <"$tmp/ps"
	return 1
}
service_running() {
	if [ -n "$p_pattern" ]; then
		scratch
		service_pattern
		return
	fi
	quiet "$run" "$p_name" status
}
service_do() { # verb
	scratch
	"$run" "$p_name" "$1" $p_arguments >"$tmp/stdout" 2>"$tmp/stderr" </dev/null && return
	say rc $?
	say stdout "$(cat "$tmp/stdout")"
	say stderr "$(cat "$tmp/stderr")"
	fail "Unable to $1 service $p_name: $(cat "$tmp/stdout" "$tmp/stderr")"
}
service_restart() {
	if [ -n "$p_sleep" ]; then
		quiet "$run" "$p_name" stop $p_arguments
		sleep "$p_sleep"
		service_do start
		return
	fi
	service_do restart
}
service_switch() {
	[ -n "$p_state" ] || return 0
	action=''
	if service_running; then
		say active active/running
		case $p_state in stopped) action=stop ;; restarted) action=restart ;; reloaded) action=reload ;; esac
	else
		say active inactive/dead
		case $p_state in started | restarted | reloaded) action=start ;; esac
	fi
	[ -n "$action" ] || return 0
	say changed 1
	[ -z "$p_check" ] || return 0
	case $action in
	restart) service_restart ;;
	*) service_do "$action" ;;
	esac
}
openrc_enabled() {
	[ -e "/etc/runlevels/${p_runlevel:-default}/$p_name" ]
}
sysv_enabled() {
	if [ -n "$p_runlevels" ]; then
		for level in $p_runlevels; do
			sysv_enabled_in "$level" || return 1
		done
		return 0
	fi
	for link in /etc/rc[2345].d/S[0-9][0-9]"$p_name" /etc/rc.d/rc[2345].d/S[0-9][0-9]"$p_name"; do
		[ ! -e "$link" ] && [ ! -L "$link" ] || return 0
	done
	return 1
}
sysv_enabled_in() { # RUNLEVEL
	for link in /etc/rc"$1".d/S[0-9][0-9]"$p_name" /etc/rc.d/rc"$1".d/S[0-9][0-9]"$p_name"; do
		[ ! -e "$link" ] && [ ! -L "$link" ] || return 0
	done
	return 1
}
sysv_levels() { # enable|disable: in some runlevels
	if has update-rc.d; then
		[ "$1" = disable ] || step "Unable to enable service $p_name" update-rc.d "$p_name" defaults
		step "Unable to $1 service $p_name" update-rc.d "$p_name" "$1" $p_runlevels
	elif has chkconfig; then
		[ "$1" = enable ] && verb=on || verb=off
		step "Unable to $1 service $p_name" chkconfig --level "$(printf %s $p_runlevels)" "$p_name" "$verb"
	else
		fail "the host has neither update-rc.d nor chkconfig: cannot $1 $p_name in runlevels"
	fi
}
service_boot() { # on|off
	if [ -n "$p_runlevels" ]; then
		if [ "$1" = on ]; then sysv_levels enable; else sysv_levels disable; fi
		return
	fi
	if [ "$kind" = openrc ]; then
		[ "$1" = on ] && verb=add || verb=del
		step "Unable to enable or disable service $p_name" rc-update "$verb" "$p_name" "${p_runlevel:-default}"
	elif has update-rc.d; then
		if [ "$1" = on ]; then
			step "Unable to enable service $p_name" update-rc.d "$p_name" defaults
			[ -n "$p_check" ] || quiet update-rc.d "$p_name" enable || fail "Unable to enable service $p_name: $(output)"
			return
		fi
		step "Unable to disable service $p_name" update-rc.d "$p_name" disable
	elif has chkconfig; then
		step "Unable to enable or disable service $p_name" chkconfig "$p_name" "$1"
	else
		fail "the host has none of rc-update, update-rc.d and chkconfig: cannot enable or disable $p_name"
	fi
}
service_enable() {
	[ -n "$p_enabled$p_no_enabled" ] || return 0
	if "${kind}_enabled"; then
		say enabled 1
		[ -z "$p_no_enabled" ] || service_boot off
	else
		[ -z "$p_enabled" ] || service_boot on
	fi
}
service_main() {
	kind=$p_use
	if [ "$kind" = auto ]; then
		if [ -d /run/systemd/system ]; then
			kind=systemd
		elif has rc-service; then
			kind=openrc
		else
			kind=sysv
		fi
	fi
	case $kind in sysvinit | service) kind=sysv ;; esac
	say kind "$kind"
	case $kind in
	systemd)
		systemd_main
		return
		;;
	openrc) run=rc-service ;;
	*)
		if has service && [ ! -d /run/systemd/system ]; then run=service; else run=sysv_script; fi
		;;
	esac
	[ -x "/etc/init.d/$p_name" ] || [ -x "/etc/rc.d/init.d/$p_name" ] ||
		service_unknown
	service_enable
	service_switch
}
sysv_script() {
	script=/etc/init.d/$1
	shift
	"$script" "$@"
}
