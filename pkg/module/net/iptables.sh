# shellcheck shell=sh disable=SC2154
# The script of the module iptables, for the tool p_tool. The arguments are the rule.
tool=$p_tool
ipt() { quiet "$tool" ${p_wait:+-w "$p_wait"} -t "$p_table" "$@"; }
rule_there() {
	ipt -C "$p_chain" "$@" && return 0
	code=$?
	# Status 1 means that the rule does not exist; higher, that the tool rejects it, maybe only
	# until the chain exists, which in check mode an earlier task may be about to create.
	[ "$code" = 1 ] || [ "$p_state$p_check" != present ] || {
		why=$(output)
		! chain_there || fail "$tool rejects the rule: $why"
	}
	return 1
}
chain_there() { ipt -n -L "$p_chain" 1; }
iptables_rule() {
	if rule_there "$@"; then
		[ "$p_state" = present ] || step "delete the rule" "$tool" ${p_wait:+-w "$p_wait"} -t "$p_table" -D "$p_chain" "$@"
		return
	fi
	[ "$p_state" = present ] || return 0
	if [ -n "$p_chain_management" ] && ! chain_there; then
		step "make chain $p_chain" "$tool" ${p_wait:+-w "$p_wait"} -t "$p_table" -N "$p_chain"
	fi
	if [ "$p_action" = insert ]; then
		step "insert the rule" "$tool" ${p_wait:+-w "$p_wait"} -t "$p_table" -I "$p_chain" ${p_rule_num:+"$p_rule_num"} "$@"
	else
		step "append the rule" "$tool" ${p_wait:+-w "$p_wait"} -t "$p_table" -A "$p_chain" "$@"
	fi
}
iptables_chain() {
	if chain_there; then
		[ "$p_state" = present ] || step "delete chain $p_chain" "$tool" ${p_wait:+-w "$p_wait"} -t "$p_table" -X "$p_chain"
	elif [ "$p_state" = present ]; then
		step "make chain $p_chain" "$tool" ${p_wait:+-w "$p_wait"} -t "$p_table" -N "$p_chain"
	fi
}
iptables_policy() {
	ipt -n -L "$p_chain" || fail "Can't detect current policy of $p_chain: $(output)"
	now=$(sed -n '1s/.*(policy \([A-Z]*\).*/\1/p' "$tmp/out")
	[ -n "$now" ] || fail "Can't detect current policy of $p_chain: only built-in chains have a policy"
	[ "$now" = "$p_policy" ] || step "set the policy" "$tool" ${p_wait:+-w "$p_wait"} -t "$p_table" -P "$p_chain" "$p_policy"
}
iptables_main() {
	need "$tool"
	if [ -n "$p_flush" ]; then
		step "flush" "$tool" ${p_wait:+-w "$p_wait"} -t "$p_table" -F ${p_chain:+"$p_chain"}
	elif [ -n "$p_policy" ]; then
		iptables_policy
	elif [ $# = 0 ] && [ -n "$p_chain_management" ]; then
		iptables_chain
	else
		iptables_rule "$@"
	fi
}
