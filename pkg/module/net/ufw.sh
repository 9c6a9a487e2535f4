# shellcheck shell=sh disable=SC2154
# What the module ufw does: ufw_begin, a ufw_command for each, ufw_end.
ufw_state() { # what the firewall is like, to compare
	ufw status verbose 2>&1
	ufw_tuples user.rules
	ufw_tuples user6.rules
	# Of these ufw tells nothing while it is off.
	grep -hE '^(DEFAULT_(INPUT|OUTPUT|FORWARD)_POLICY|LOGLEVEL)=' /etc/default/ufw /etc/ufw/ufw.conf 2>/dev/null | sed 's/^/### /'
}
# ufw names the backups of a reset by the second, and does not reset twice in one.
ufw_again() {
	case "$*: $(output)" in
	*reset:*'already exists'*) sleep 1 && quiet ufw "$@" ;;
	*) return 1 ;;
	esac
}
ufw_command() {
	say command "ufw $*"
	case "$*" in *reset | reload) say changed 1 ;; esac
	if [ -z "$p_check" ]; then
		quiet ufw "$@" || ufw_again "$@" || fail "$(output)"
		return
	fi
	case $1 in
	--force) ufw_predict "$2" ;;
	reload | default | logging) ufw_predict "$@" ;;
	*)
		quiet ufw --dry-run "$@" || fail "$(output)"
		ufw_predict_rules
		;;
	esac
}
ufw_tuples() { # FILE: the rules that ufw keeps in it
	grep -h '^### tuple' "/lib/ufw/$1" "/etc/ufw/$1" "/var/lib/ufw/$1" 2>/dev/null
}
# A dry run prints the rules as they would be, of the families that the rule is for.
ufw_predict_rules() {
	then=$(output | grep '^### tuple')
	now=$(
		! output | grep -q '^:ufw-user-input' || ufw_tuples user.rules
		! output | grep -q '^:ufw6-user-input' || ufw_tuples user6.rules
	)
	[ "$then" = "$now" ] || say changed 1
}
ufw_predict() {
	case $1:$2 in
	enable:*) is='^Status: active' ;;
	disable:*) is='^Status: inactive' ;;
	default:*) is="^### DEFAULT_$(ufw_chain "$3")_POLICY=\"$(ufw_policy "$2")\"" ;;
	logging:on) is='^### LOGLEVEL=[^o]' ;;
	logging:*) is="^### LOGLEVEL=$2\$" ;;
	*) return 0 ;;
	esac
	printf '%s\n' "$before" | grep -q "$is" || say changed 1
}
ufw_chain() { case $1 in incoming) echo INPUT ;; outgoing) echo OUTPUT ;; *) echo FORWARD ;; esac; }
ufw_policy() { case $1 in allow) echo ACCEPT ;; deny) echo DROP ;; *) echo REJECT ;; esac; }
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
