# shellcheck shell=sh disable=SC2154
# The zone is the link /etc/localtime; Debian also stores its name in /etc/timezone.
zone_now() {
	zone=$(readlink /etc/localtime 2>/dev/null)
	case $zone in
	*zoneinfo/*) printf %s "${zone##*zoneinfo/}" ;;
	*) [ ! -r /etc/timezone ] || head -n 1 /etc/timezone ;;
	esac
}
clock_now() { # the third line of /etc/adjtime
	clock=$(sed -n 3p /etc/adjtime 2>/dev/null)
	case $clock in LOCAL) printf local ;; *) printf UTC ;; esac
}
timezone_main() {
	zone=$(zone_now)
	clock=$(clock_now)
	say zone "$zone"
	say clock "$clock"
	if [ -n "$p_name" ]; then
		if [ ! -f "/usr/share/zoneinfo/$p_name" ]; then
			[ -d /usr/share/zoneinfo ] || not_yet "/usr/share/zoneinfo does not exist on the host: install tzdata"
			[ ! -d /usr/share/zoneinfo ] || fail "given timezone \"$p_name\" is not available"
		fi
		if [ "$zone" != "$p_name" ] || { [ -f /etc/timezone ] && [ "$(cat /etc/timezone)" != "$p_name" ]; }; then
			say changed 1
			[ -n "$p_check" ] || zone_set
		fi
	fi
	if [ -n "$p_hwclock" ] && [ "$clock" != "$p_hwclock" ]; then
		say changed 1
		[ -n "$p_check" ] || clock_set
	fi
}
with_timedated() { [ -d /run/systemd/system ] && has timedatectl; }
# timedatectl also passes the zone to the kernel. After a boot, the kernel takes the first
# one for that of the hardware clock, and shifts its own time by it: in a container, the
# time of the machine. Only a clock in local time needs it.
zone_set() {
	if [ "$clock" != local ] || ! with_timedated || ! quiet timedatectl set-timezone "$p_name"; then
		quiet ln -s "/usr/share/zoneinfo/$p_name" "/etc/.localtime.${kk_id:-$$}" || fail "link the zone: $(output)"
		quiet mv -f "/etc/.localtime.${kk_id:-$$}" /etc/localtime || fail "replace /etc/localtime: $(output)"
	fi
	# timedatectl writes /etc/timezone on some releases only
	[ ! -f /etc/timezone ] || [ "$(cat /etc/timezone)" = "$p_name" ] || printf '%s\n' "$p_name" | replace /etc/timezone 644 || fail "write /etc/timezone"
}
clock_set() {
	case $p_hwclock in local) flag=--localtime local=1 mode=LOCAL ;; *) flag=--utc local=0 mode=UTC ;; esac
	with_timedated && quiet timedatectl set-local-rtc "$local" && return
	has hwclock && [ -e /dev/rtc ] && quiet hwclock --systohc "$flag" && return
	# There is no clock to write to: only record how to read it.
	if [ -f /etc/adjtime ]; then
		{
			sed -n 1,2p /etc/adjtime
			echo "$mode"
		} | replace /etc/adjtime 644
	else
		printf '0.0 0 0.0\n0\n%s\n' "$mode" | replace /etc/adjtime 644
	fi || fail "write /etc/adjtime"
}
