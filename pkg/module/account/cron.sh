# shellcheck shell=sh disable=SC2154
cron_read() {
	if [ -n "$p_file" ]; then
		[ -e "$p_file" ] || return 0
		text=$(cat "$p_file" && printf x) || fail "Unable to read $p_file"
		say text "$text"
		say exists 1
		return
	fi
	has crontab || fail "crontab is not installed on the host: install cron"
	text=$(crontab -l ${p_user:+-u "$p_user"} 2>&1 && printf x) || case $text in
	*'no crontab for'* | *"can't open"* | *'No such file'*) return 0 ;;
	*) fail "Unable to read crontab: $text" ;;
	esac
	say text "$text"
	say exists 1
}
cron_backup() {
	kept=$(mktemp "${TMPDIR:-/tmp}/crontab.XXXXXX") || fail "create a backup file"
	if [ -n "$p_file" ]; then
		cat "$p_file" >"$kept"
	else
		crontab -l ${p_user:+-u "$p_user"} >"$kept"
	fi || fail "back up the crontab"
	say backup "$kept"
}
cron_write() { # the new text is on standard input
	[ -z "$p_backup" ] || cron_backup
	if [ -n "$p_remove" ]; then
		rm -f "$p_file" || fail "remove $p_file"
	elif [ -n "$p_file" ]; then
		replace "$p_file" 644 || fail "write $p_file"
	else
		scratch
		cat >"$tmp/tab" || fail "write a temporary file"
		crontab ${p_user:+-u "$p_user"} "$tmp/tab" >"$tmp/out" 2>&1 || fail "Unable to install crontab: $(output)"
	fi
}
