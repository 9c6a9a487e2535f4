# shellcheck shell=sh disable=SC2154
# systemd_main: unit $p_unit, called $p_name by the user.
sc() { systemctl "--${p_scope:-system}" "$@"; }
systemd_state() { # reads what is from $show
	load='' active='' sub='' file=''
	while IFS= read -r property; do
		case $property in
		LoadState=*) load=${property#*=} ;;
		ActiveState=*) active=${property#*=} ;;
		SubState=*) sub=${property#*=} ;;
		UnitFileState=*) file=${property#*=} ;;
		esac
	done <<END
$show
END
}
service_unknown() {
	not_yet "Could not find the requested service $p_name: host"
	case $p_state:$p_enabled in started: | restarted: | reloaded: | *:1) say changed 1 ;; esac
	exit 0
}
systemd_missing() {
	[ "$load" = not-found ] || return 0
	service_unknown
}
systemd_mask() {
	[ -n "$p_masked$p_no_masked" ] || return 0
	case $load:$file in masked:* | *:masked | *:masked-runtime) masked=1 ;; *) masked='' ;; esac
	if [ -n "$p_masked" ] && [ -z "$masked" ]; then
		step "Unable to mask service $p_name" sc mask -- "$p_unit"
	elif [ -n "$p_no_masked" ] && [ -n "$masked" ]; then
		step "Unable to unmask service $p_name" sc unmask -- "$p_unit"
		[ -n "$p_check" ] || { show=$(sc show -- "$p_unit" 2>/dev/null) && systemd_state; }
		[ "$load" != masked ] || load=loaded
	fi
}
systemd_links() { # whether the unit has links of its own, or those of its related units exist
	fragment=$(sc show -p FragmentPath -- "$p_unit" 2>/dev/null)
	fragment=${fragment#FragmentPath=}
	! grep -qE '^[[:space:]]*(WantedBy|RequiredBy|Alias)[[:space:]]*=' "$fragment" 2>/dev/null || return 1
	# shellcheck disable=SC2013 # the line has several names
	for also in $(sed -n 's/^[[:space:]]*Also[[:space:]]*=//p' "$fragment" 2>/dev/null); do
		sc is-enabled --quiet -- "$also" >/dev/null 2>&1 || return 1
	done
}
# Enabling a unit makes systemd reload all units. If it just did, and the unit is started
# now anyway, the reload is deferred until something may depend on it.
systemd_turn_on() {
	if [ -z "$p_late" ] || [ -z "$late" ]; then
		step "Unable to enable service $p_name" sc enable ${p_force:+--force} -- "$p_unit"
		say reloaded 1
		return
	fi
	step "Unable to enable service $p_name" sc enable --no-reload ${p_force:+--force} -- "$p_unit"
	[ -z "$p_check" ] || return 0
	if systemd_only_wants; then
		say due 1
		return
	fi
	quiet sc daemon-reload || fail "failure during daemon-reload: $(output)"
	say reloaded 1
}
systemd_recheck() { # the unit itself was enabled by the previous task
	[ -z "$p_check" ] || return 0
	quiet sc daemon-reload || fail "failure during daemon-reload: $(output)"
	show=$(sc show -- "$p_unit" 2>&1) || fail "query systemd about $p_name: $show"
	say status "$show"
}
systemd_only_wants() { # whether the only links created are those of targets that want the unit
	seen=''
	while IFS= read -r made || [ -n "$made" ]; do
		case $made in
		'Created symlink '*.target.wants/*) seen=1 ;;
		*) return 1 ;;
		esac
	done <<END
$(output)
END
	[ -n "$seen" ]
}
systemd_enable() {
	[ -n "$p_enabled$p_no_enabled" ] || return 0
	systemd_missing
	shown=$file
	file=$(sc is-enabled -- "$p_unit" 2>/dev/null)
	say unitfile "$file"
	[ -z "$p_late" ] || [ -z "$late" ] || [ "$file" = "$shown" ] || systemd_recheck
	case $file in
	static | alias | generated | transient | linked-runtime) return 0 ;; # nothing to switch
	indirect)
		[ -z "$p_no_enabled" ] || return 0
		enabled=''
		! systemd_links || enabled=1
		;;
	enabled) enabled=1 ;; # not enabled-runtime, which is lost at the next boot
	*) enabled='' ;;
	esac
	[ -z "$enabled" ] || say enabled 1
	if [ -n "$p_enabled" ] && [ -z "$enabled" ]; then
		systemd_turn_on
	elif [ -n "$p_no_enabled" ] && [ -n "$enabled" ]; then
		step "Unable to disable service $p_name" sc disable ${p_force:+--force} -- "$p_unit"
	fi
}
systemd_switch() {
	[ -n "$p_state" ] || return 0
	systemd_missing
	case $active in active | activating | reloading) running=1 ;; *) running='' ;; esac
	action=''
	case $p_state in
	started) [ -n "$running" ] || action=start ;;
	stopped) [ -z "$running" ] && [ "$active" != deactivating ] || action=stop ;;
	restarted) if [ -n "$running" ]; then action=restart; else action=start; fi ;;
	reloaded) if [ -n "$running" ]; then action=reload; else action=start; fi ;;
	esac
	[ -n "$action" ] || return 0
	block=''
	[ -z "$p_no_block" ] || block=--no-block
	step "Unable to $action service $p_name" sc "$action" $block -- "$p_unit"
}
systemd_main() {
	# systemctl starts processes under systemd, so they keep no pipe open.
	quiet() { said=$("$@" 2>&1 </dev/null); }
	output() { printf '%s\n' "$said"; }
	has systemctl || fail "systemctl is not installed: the host does not run systemd"
	if [ "$p_scope" = user ] && [ -z "$XDG_RUNTIME_DIR" ]; then
		XDG_RUNTIME_DIR=/run/user/$(id -u)
		export XDG_RUNTIME_DIR
	fi
	late=$KK_DEFER
	if [ -z "$p_check" ]; then
		[ -z "$p_daemon_reexec" ] || quiet sc daemon-reexec || fail "failure during daemon-reexec: $(output)"
		if [ -n "$p_daemon_reload" ]; then
			quiet sc daemon-reload || fail "failure during daemon-reload: $(output)"
			say reloaded 1
			late=1
		fi
	fi
	[ -n "$p_unit" ] || return 0
	if [ "$p_scope" = global ]; then
		show=LoadState=loaded
	else
		show=$(sc show -- "$p_unit" 2>&1) || fail "query systemd about $p_name: $show"
		say status "$show"
	fi
	systemd_state
	say active "$active/$sub"
	[ -n "$p_masked$p_no_masked$p_daemon_reload" ] || [ -n "$p_state$p_enabled$p_no_enabled" ] || systemd_missing
	systemd_mask
	systemd_enable
	systemd_switch
}
