#!/bin/sh
# kk-etcd-tuning start|stop
# What etcd.performance and etcd.traffic_priority set on this host, until it is stopped.
set -eu

governors=/run/kk-etcd-governors
{% if etcd.traffic_priority %}
address={{ (etcd_stacked_address if not cluster_external_etcd else etcd_addresses[inventory_hostname]) | quote }}
{% endif %}
handle=6b6b:
{% if etcd.performance %}

# The governors from before are kept for stop.
full_speed() {
	for file in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do
		[ -f "$file" ] || continue
		echo "$file $(cat "$file")" >>"$governors"
		echo performance >"$file"
	done
}
{% endif %}

own_speed() {
	[ -f "$governors" ] || return 0
	while read -r file governor; do
		echo "$governor" >"$file"
	done <"$governors"
	rm -f "$governors"
}

{% if etcd.traffic_priority %}
interface() {
	ip -o address show to "$address" | awk '{ print $2; exit }'
}

# filter PORT FIELD: packets with this port are sent first.
filter() {
	tc filter add dev "$device" parent "$handle" protocol ip prio 1 u32 match ip "$2" "$1" 0xffff flowid "$handle"1
	tc filter add dev "$device" parent "$handle" protocol ipv6 prio 2 u32 match ip6 "$2" "$1" 0xffff flowid "$handle"1
}

prefer() {
	device=$(interface)
	if [ -z "$device" ]; then
		echo "no interface has the address $address" >&2
		return 1
	fi
	tc qdisc add dev "$device" root handle "$handle" prio bands 3
	for port in 2379 2380; do
		filter "$port" sport
		filter "$port" dport
	done
}

{% endif %}
equal() {
	for device in $(tc qdisc show | awk -v handle="$handle" '$1 == "qdisc" && $3 == handle { print $5 }'); do
		tc qdisc del dev "$device" root handle "$handle"
	done
}

stop() {
	own_speed
	! command -v tc >/dev/null || equal
}

case ${1-} in
start)
	stop
{% if etcd.performance %}
	full_speed
{% endif %}
{% if etcd.traffic_priority %}
	prefer
{% endif %}
	;;
stop) stop ;;
*)
	echo "usage: kk-etcd-tuning start | stop" >&2
	exit 2
	;;
esac
