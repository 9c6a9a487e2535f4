#!/bin/sh
# Removes the interfaces whose names match INTERFACES, the chains of iptables whose names
# begin with one of CHAINS together with the rules that lead to them, and the tables of
# nftables named in TABLES. Prints what it removed.
set -eu

begins() {
	for prefix in $CHAINS; do
		case $1 in "$prefix"*) return 0 ;; esac
	done
	return 1
}

# A chain cannot go while a rule leads to it.
remove_chains() {
	command -v "$1" >/dev/null || return 0
	for table in raw mangle nat filter; do
		rules=$("$1" -w -t "$table" -S 2>/dev/null) || continue
		ours=
		for chain in $(printf '%s\n' "$rules" | sed -n 's/^-N //p'); do
			if begins "$chain"; then ours="$ours $chain"; fi
		done
		for chain in $ours; do
			printf '%s\n' "$rules" | sed -n "s/^-A \(.* -[jg] $chain\)\( .*\)\{0,1\}$/-D \1\2/p" |
				while read -r rule; do eval "$1 -w -t $table $rule" || true; done
			"$1" -w -t "$table" -F "$chain"
		done
		for chain in $ours; do
			"$1" -w -t "$table" -X "$chain"
			echo "$1: $table $chain"
		done
	done
}

remove_interfaces() {
	set -f
	for pattern in $INTERFACES; do
		set +f
		for path in /sys/class/net/$pattern; do
			[ -e "$path" ] || continue
			if ip link delete "${path##*/}" 2>/dev/null; then echo "interface ${path##*/}"; fi
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
