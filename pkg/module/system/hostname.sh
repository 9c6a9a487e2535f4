# shellcheck shell=sh disable=SC2154
hostname_now() {
	if [ -r /proc/sys/kernel/hostname ]; then cat /proc/sys/kernel/hostname; else uname -n; fi
}
hostname_file() { # prints the first name in /etc/hostname
	[ -r /etc/hostname ] || return 0
	while IFS= read -r line || [ -n "$line" ]; do
		case $line in '' | '#'*) continue ;; esac
		printf '%s\n' "$line"
		return 0
	done </etc/hostname
}
hostname_kernel() {
	if has hostname; then
		quiet hostname "$p_name" && return
	fi
	scratch
	printf '%s\n' "$p_name" 2>"$tmp/out" >/proc/sys/kernel/hostname
}
hostname_write() {
	printf '%s\n' "$p_name" | replace /etc/hostname 644 || fail "write /etc/hostname"
	hostname_kernel || fail "set the host name: $(output)"
}
hostname_main() {
	now=$(hostname_now)
	kept=$(hostname_file)
	say was "$now"
	say kept "$kept"
	if [ "$now" != "$p_name" ] || [ "$kept" != "$p_name" ]; then
		say changed 1
		if [ -z "$p_check" ]; then
			if [ "$p_use" = systemd ] || { [ "$p_use" = auto ] && [ -d /run/systemd/system ] && has hostnamectl; }; then
				quiet hostnamectl set-hostname -- "$p_name" || fail "Command failed hostnamectl set-hostname: $(output)"
			else
				hostname_write
			fi
		fi
	fi
	say fqdn "$(hostname -f 2>/dev/null)"
}
