#!/bin/sh
# Removes what Kubernetes left in the kernel, each item by its name; prints what
# it removed. Chains and interfaces of others are kept.
set -u

unmount() {
	awk -v dir="$1/" 'index($2, dir) == 1 { print $2 }' /proc/mounts | sort -r | while read -r path; do
		path=$(printf '%b' "$path")
		umount "$path" 2>/dev/null || umount -l "$path"
		echo "mount $path"
	done
}

# Rules that jump to the chains of Kubernetes are removed first, then the chains.
ours='(KUBE-|CNI-|FLANNEL)[A-Za-z0-9_-]*'
rules() {
	command -v "$1" >/dev/null 2>&1 || return 0
	for table in nat filter mangle; do
		saved=$("$1-save" -t "$table" 2>/dev/null) || continue
		chains=$(printf '%s\n' "$saved" | sed -nE "s/^:($ours) .*/\1/p")
		[ -n "$chains" ] || continue
		{
			echo "*$table"
			for chain in $chains; do
				echo "-F $chain"
			done
			printf '%s\n' "$saved" | grep -vE "^-A $ours( |$)" | sed -nE "s/^-A (.* -[jg] $ours( .*)?)$/-D \1/p"
			for chain in $chains; do
				echo "-X $chain"
			done
			echo COMMIT
		} | "$1-restore" --noflush && echo "$1 $table"
	done
}

# kube-proxy's nftables tables, if it ran in that mode.
tables() {
	command -v nft >/dev/null 2>&1 || return 0
	for family in ip ip6; do
		if nft list table "$family" kube-proxy >/dev/null 2>&1; then
			nft delete table "$family" kube-proxy && echo "nft $family kube-proxy"
		fi
	done
}

# kube-proxy's virtual servers use its interface.
servers() {
	ip link show kube-ipvs0 >/dev/null 2>&1 || return 0
	if command -v ipvsadm >/dev/null 2>&1; then
		ip -o addr show dev kube-ipvs0 | awk '{ sub("/.*", "", $4); print $4 }' | while read -r address; do
			case $address in
			*:*) match="[$address]:" ;;
			*) match="$address:" ;;
			esac
			ipvsadm --save --numeric | awk -v at="$match" '$1 == "-A" && index($3, at) == 1 { print $2, $3 }' | while read -r kind service; do
				ipvsadm --delete-service "$kind" "$service" && echo "ipvs $service"
			done
		done
	fi
	ip link delete kube-ipvs0 && echo "interface kube-ipvs0"
}

# kubelet's plugin directory, unless it contains plugins.
plugins() {
	[ ! -d /usr/libexec/kubernetes ] || find /usr/libexec/kubernetes -depth -type d -empty -print -delete
}

unmount /var/lib/kubelet
rules iptables
rules ip6tables
tables
servers
plugins
exit 0
