# shellcheck shell=sh disable=SC2154
alternatives_read() {
	has update-alternatives || fail "update-alternatives is not installed on the host"
	say display "$(update-alternatives --display "$p_name" 2>/dev/null)"
	[ ! -e "$p_path" ] || say path 1
}
alternatives_act() { # WORDS for --install, or none; then $p_then
	if [ $# -gt 0 ]; then
		quiet update-alternatives --install "$@" || fail "install $p_path: $(output)"
	fi
	case $p_then in
	set) quiet update-alternatives --set "$p_name" "$p_path" || fail "select $p_path: $(output)" ;;
	auto) quiet update-alternatives --auto "$p_name" || fail "select by priority: $(output)" ;;
	remove) quiet update-alternatives --remove "$p_name" "$p_path" || fail "remove $p_path: $(output)" ;;
	esac
}
