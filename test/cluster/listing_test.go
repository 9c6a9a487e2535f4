package cluster

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// listing is what a host has: files with mode, owner and target, processes,
// mounts, interfaces, rules of the packet filter, and units.
type listing map[string]bool

// inventoryOfHost prints one thing a line. What changes by itself on any host
// (sessions, temporary files, times) is left out here; what kk leaves is judged below.
const inventoryOfHost = `export LC_ALL=C
{ find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /var/tmp \) -prune -o -printf '%y %m %u:%g %p -> %l\n'
  find /run /var/lib/containerd /var/lib/kubelet /var/lib/etcd -xdev -printf '%y %m %u:%g %p -> %l\n'
} | sed 's/ -> $//; s/^/file /' | sort -u
find /etc -xdev -type f -exec sha256sum {} + | sed 's/^/content /' | sort
ps -eo comm= | sed 's/^/process /' | sort -u
awk '{print "mount", $2, $3}' /proc/mounts | sort -u
ip -o link | awk -F': ' '{sub(/@.*/, "", $2); print "link", $2}'
ip -4 route | sed 's/^/route /'
for t in filter nat mangle raw; do iptables-save -t $t 2>/dev/null; done | grep -E '^(-A|:)' | sed 's/ \[[0-9:]*\]$//; s/^/rule /'
systemctl list-unit-files --no-legend --no-pager | awk '{print "unit", $1, $2}'
`

func (c *controller) listing(t *testing.T, number int) listing {
	t.Helper()
	l := listing{}
	for line := range strings.Lines(c.exec(t, number, inventoryOfHost)) {
		l[strings.TrimSpace(line)] = true
	}
	return l
}

func (c *controller) listings(t *testing.T) map[int]listing {
	t.Helper()
	all := map[int]listing{}
	for _, n := range c.numbers() {
		all[n] = c.listing(t, n)
	}
	return all
}

// stays names what a deleted cluster may leave, and why. Anything else is a fault.
var stays = []struct{ why, pattern string }{
	{"the host's own doing: sessions, logs, caches, time", `^file . \d+ \S+ /(run/(systemd|user|log|lock|sudo|udev|credentials|dbus|sshd|cron|mount|utmp|motd|agetty|initctl|chrony|blkid)|var/log|var/cache|var/lib/(systemd|apt|dpkg|private|logrotate|chrony|ucf|update-)|root/\.cache)`},
	{"folders and locks of the running system, gone with its next boot", `^file . \d+ \S+ /run/(nri|netns|xtables\.lock)$`},
	{"processes that come and go", `^process (\(sd-pam\)|ps|sh|sed|sort|find|sshd|systemd.*|awk|sleep|cron|sudo|bash|cat|agetty|kworker.*|dbus-daemon|tr|env)$`},
	{"packages of the distribution, which others may use by now", `^(file . \d+ \S+ /(usr|lib|bin|sbin)/|(file . \d+ \S+ |content \w+ +)/etc/(alternatives|apparmor|apparmor.d|bash_completion.d|chrony|cron|default|dhcp|dpkg|ethertypes|init.d|ipset|iproute2|ld.so|logrotate.d|logcheck|modules|network|nftables|pam.d|ppp|rc[0-6S].d|security|selinux|systemd/system/(chrony|dbus|multi-user|nftables)|sysctl.d/README|ucf|update-motd.d|gai|group|gshadow|passwd|shadow|subgid|subuid|ld\.so|NetworkManager)|unit (nftables|chrony|ipset|ebtables|netfilter|conntrack|nfs|rpc|e2scrub|apt|dpkg|fstrim|ip6?tables)|process chronyd)`},
	{"folders that were empty mounts of the lab", `^file d \d+ \S+ /var/lib/(containerd|kubelet|etcd)$`},
	{"rules of chains that every iptables command makes", `^rule :(INPUT|OUTPUT|FORWARD|PREROUTING|POSTROUTING) `},
}

// sameBut fails the test for each line that came or went and is not in stays.
func sameBut(t *testing.T, host string, before, after listing) {
	t.Helper()
	var faults []string
	for line := range after {
		if !before[line] && !allowed(line) {
			faults = append(faults, "+ "+line)
		}
	}
	for line := range before {
		if !after[line] && !allowed(line) {
			faults = append(faults, "- "+line)
		}
	}
	slices.Sort(faults)
	if len(faults) > 0 {
		t.Errorf("%s is not as it was (%d differences):\n%s", host, len(faults), strings.Join(faults[:min(200, len(faults))], "\n"))
	}
}

func allowed(line string) bool {
	return slices.ContainsFunc(stays, func(s struct{ why, pattern string }) bool {
		return regexp.MustCompile(s.pattern).MatchString(line)
	})
}

func (c *controller) asBefore(t *testing.T, before map[int]listing) {
	t.Helper()
	for n, l := range before {
		sameBut(t, c.name(n), l, c.listing(t, n))
	}
}
