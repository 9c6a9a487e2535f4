#!/bin/sh
# Removes the interfaces whose names match INTERFACES, the chains of iptables whose names
# begin with one of CHAINS together with the rules that jump to them, and the tables of
# nftables named in TABLES. Prints what it removed.
set -eu

begins() {
	for prefix in $CHAINS; do
		case $1 in "$prefix"*) return 0 ;; esac
	done
	return 1
}

# Rules that jump to one of the chains: CHAIN NUMBER, the last first.
leading_to() {
	awk -v chains="$1" '
		BEGIN { count = split(chains, list, " "); for (i = 1; i <= count; i++) ours[list[i]] = 1 }
		$1 == "-A" {
			number[$2]++
			for (i = 3; i < NF; i++)
				if (($i == "-j" || $i == "-g") && $(i + 1) in ours) { print $2, number[$2]; break }
		}' | sort -k1,1 -k2,2nr
}

# A chain cannot be removed while a rule jumps to it.
remove_chains() {
	command -v "$1" >/dev/null || return 0
	for table in raw mangle nat filter; do
		rules=$("$1" -w -t "$table" -S 2>/dev/null) || continue
		ours=
		for chain in $(printf '%s\n' "$rules" | sed -n 's/^-N //p'); do
			if begins "$chain"; then ours="$ours $chain"; fi
		done
		printf '%s\n' "$rules" | leading_to "$ours" | while read -r chain number; do
			"$1" -w -t "$table" -D "$chain" "$number"
		done
		for chain in $ours; do
			"$1" -w -t "$table" -F "$chain"
		done
		for chain in $ours; do
			"$1" -w -t "$table" -X "$chain"
			echo "$1: $table $chain"
		done
	done
}

# Uses ip: /sys of a container can be that of its machine.
remove_interfaces() {
	set -f
	ip -o link | sed -n 's/^[0-9]*: \([^:@]*\)[:@].*/\1/p' | while read -r name; do
		for pattern in $INTERFACES; do
			# shellcheck disable=SC2254 # a pattern it is
			case $name in $pattern) ;; *) continue ;; esac
			if ip link delete "$name" 2>/dev/null; then echo "interface $name"; fi
		done
	done
	set +f
}

remove_tables() {
	command -v nft >/dev/null || return 0
	for table in $TABLES; do
		for family in ip ip6 inet; do
			if nft delete table "$family" "$table" 2>/dev/null; then echo "nft: $family $table"; fi
		done
	done
}

remove_interfaces
remove_chains iptables
remove_chains ip6tables
remove_tables
