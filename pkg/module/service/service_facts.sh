# shellcheck shell=sh disable=SC2154
service_facts_main() {
	if [ -d /run/systemd/system ] && has systemctl; then
		say units "$(systemctl list-units --no-pager --no-legend --plain --type service --all 2>/dev/null)"
		say files "$(systemctl list-unit-files --no-pager --no-legend --type service --all 2>/dev/null)"
		return
	fi
	if has rc-status; then
		say openrc "$(rc-status -a -s 2>/dev/null)"
		say runlevels "$(rc-update show -v 2>/dev/null)"
	elif has service; then
		say sysv "$(service --status-all 2>/dev/null)"
	fi
}
