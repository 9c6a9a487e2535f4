# shellcheck shell=sh disable=SC2154
service_facts_main() {
	if [ -d /run/systemd/system ] && has systemctl; then
		say units "$(systemctl list-units --no-pager --no-legend --plain --type service --all 2>/dev/null)"
		files=$(systemctl list-unit-files --no-pager --no-legend --type service --all 2>/dev/null)
		say files "$files"
		# A file without a loaded unit may be an alias of a running unit. Templates are not units.
		set -f
		# shellcheck disable=SC2046
		set -- $(printf '%s\n' "$files" | sed -n '/^[^ ]*@\.service /d; s/^\([^ ]*\.service\) .*/\1/p')
		set +f
		say named "$*"
		[ $# -eq 0 ] || say states "$(systemctl show --property=ActiveState -- "$@" 2>/dev/null)"
	elif has rc-status; then
		say openrc "$(rc-status -a -s 2>/dev/null)"
		say runlevels "$(rc-update show -v 2>/dev/null)"
	fi
	if has service && ! has rc-status && ! has chkconfig; then
		say sysv "$(service --status-all 2>/dev/null)"
	fi
}
