# shellcheck shell=sh disable=SC2154
# What the module ufw does: ufw_begin, a ufw_command for each, ufw_end.
ufw_state() { # what the firewall is like, to compare
	ufw status verbose 2>&1
	grep -h '^### tuple' /lib/ufw/user.rules /lib/ufw/user6.rules /etc/ufw/user.rules /etc/ufw/user6.rules /var/lib/ufw/user.rules /var/lib/ufw/user6.rules 2>/dev/null
}
ufw_command() {
	say command "ufw $*"
	if [ -z "$p_check" ]; then
		quiet ufw "$@" || fail "$(output)"
		return
	fi
	quiet ufw --dry-run "$@" || fail "$(output)"
	case $1 in
	--force) ufw_predict "$2" ;;
	reload | default | logging) ufw_predict "$@" ;;
	*) # a rule: nothing is new if ufw only skips
		if output | grep -qv -e '^Skipping ' -e '^Could not delete non-existent rule'; then
			say changed 1
		fi
		;;
	esac
}
ufw_predict() {
	case $1:$2 in
	enable:*) is='^Status: active' ;;
	disable:*) is='^Status: inactive' ;;
	default:*) is="^Default:.*$2 ($3)" ;;
	logging:on | logging:off) is="^Logging: $2" ;;
	logging:*) is="^Logging: on ($2)" ;;
	reset:*) is='^never$' ;;
	*) return 0 ;;
	esac
	printf '%s\n' "$before" | grep -q "$is" || say changed 1
}
ufw_begin() {
	need ufw
	before=$(ufw_state)
}
ufw_end() {
	after=$before
	if [ -z "$p_check" ]; then
		after=$(ufw_state)
		[ "$before" = "$after" ] || say changed 1
	fi
	say before "$before"
	say after "$after"
}
