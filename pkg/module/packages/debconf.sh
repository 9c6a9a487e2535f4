# shellcheck shell=sh disable=SC2154
# debconf answers in lines "CODE VALUE"; 0 is success. Questions without a value, and those
# of packages that are not installed yet, are answered with 10.
debconf_ask() { # COMMAND QUESTION
	printf '%s %s\n' "$1" "$2" | debconf-communicate "$p_name" 2>/dev/null | tail -n 1
}
debconf_read() {
	has debconf-communicate || fail "debconf is not installed on the host"
	has debconf-show || fail "debconf is not installed on the host"
	[ -n "$p_question" ] || {
		say all "$(debconf-show "$p_name")"
		return 0
	}
	answer=$(debconf_ask GET "$p_question")
	case $answer in
	0 | '0 '*)
		answer=${answer#0}
		say value "${answer# }"
		;;
	esac
	seen=$(debconf_ask FGET "$p_question seen")
	say seen "${seen#0 }"
}
debconf_set() { # the line is on standard input
	scratch
	debconf-set-selections ${p_unseen:+-u} >"$tmp/out" 2>&1 || fail "set the answer: $(output)"
	[ ! -s "$tmp/out" ] || fail "set the answer: $(output)"
}
