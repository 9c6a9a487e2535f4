# shellcheck shell=sh disable=SC2154
# What the module firewalld does. The words are the options of firewall-cmd that
# ask, and after -- those that change, without --permanent.
fw() { # permanent|runtime OPTION...
	where=$1
	shift
	if [ -n "$p_offline" ]; then
		quiet firewall-offline-cmd ${p_zone:+"--zone=$p_zone"} "$@"
	elif [ "$where" = permanent ]; then
		quiet firewall-cmd --permanent ${p_zone:+"--zone=$p_zone"} "$@"
	else
		quiet firewall-cmd ${p_zone:+"--zone=$p_zone"} "$@"
	fi
}
fw_is() { # permanent|runtime: whether it is as wanted
	fw "$1" "$p_ask"
	code=$?
	if [ -n "$p_match" ]; then # the answer says how it is
		[ "$code" = 0 ] || fail "$(output)"
		[ "$(output)" = "$p_match" ]
		return
	fi
	case $code in
	0) [ -z "$p_absent" ] ;;
	1) [ -n "$p_absent" ] ;;
	112) # no such zone
		[ -n "$p_zoneless" ] || fail "$(output)"
		[ -n "$p_absent" ]
		;;
	*) fail "$(output)" ;;
	esac
}
fw_apply() { # permanent|runtime
	! fw_is "$1" || return 0
	say changed 1
	[ -z "$p_check" ] || return 0
	if [ "$1" = runtime ] && [ -n "$p_timeout" ]; then
		fw runtime "$p_act" "--timeout=$p_timeout"
	else
		fw "$1" "$p_act"
	fi || fail "$(output)"
}
firewalld_main() {
	need firewall-cmd
	if ! quiet firewall-cmd --state; then
		[ -n "$p_may_offline" ] || fail "firewall is not currently running, unable to perform immediate actions without a running firewall daemon"
		p_offline=1 p_immediate=''
		need firewall-offline-cmd
	fi
	[ -n "$p_zone$p_zoneless" ] || p_zone=$(if [ -n "$p_offline" ]; then firewall-offline-cmd --get-default-zone; else firewall-cmd --get-default-zone; fi) || fail "the default zone cannot be found"
	say zone "$p_zone"
	[ -z "$p_permanent" ] || fw_apply permanent
	[ -z "$p_immediate" ] || fw_apply runtime
}
