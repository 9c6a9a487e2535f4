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

// inventoryOfHost prints one thing a line. Files of the distribution's packages
// count as their package, settings as long as they are the package's. What kk leaves is checked below.
const inventoryOfHost = `export LC_ALL=C
d=$(mktemp -d -p /dev/shm)
dpkg-query -W -f 'package ${Package}\n'
cat /var/lib/dpkg/info/*.list | sed -E 's,^/(bin|sbin|lib|lib64)/,/usr/&,; s,//,/,g' | sort -u >$d/packaged
{ find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /var/lib/dpkg/info \) -prune -o -printf '%p\t%y %m %u:%g -> %l\n'
  find /run /tmp /var/lib/containerd /var/lib/kubelet /var/lib/etcd -xdev -printf '%p\t%y %m %u:%g -> %l\n'
} | sort -u | awk -F'\t' 'NR == FNR { packaged[$0]; next } !($1 in packaged) { sub(/ -> $/, "", $2); print "file", $1, $2 }' $d/packaged -
dpkg-query -W -f '${Conffiles}\n' | awk 'NF { print $2 "  " $1 }' | sort -u >$d/settings
find /etc -xdev -type f -exec md5sum {} + | sort | comm -23 - $d/settings | awk '{ print "content", $2, $1 }'
rm -r $d
ps -eo comm= | sed 's/^/process /' | sort -u
awk '{print "mount", $2, $3}' /proc/mounts | sort -u
ip -o link | awk -F': ' '{sub(/@.*/, "", $2); print "link", $2}'
ip -o addr | awk '{print "address", $2, $4}'
ip -4 route | sed 's/^/route /'
ip rule | sed 's/^/rule of routes /'
sysctl -a 2>/dev/null | grep -E '^net\.' | grep -vE '^net\.(netfilter\.nf_conntrack_count|ipv[46]\.(conf|neigh)\.(cni|flannel|veth))' | sed 's/^/sysctl /'
for t in filter nat mangle raw; do for v in iptables ip6tables; do $v-save -t $t 2>/dev/null | grep -E '^(-A|:)' | sed "s/ \[[0-9:]*\]$//; s/^/$v $t /"; done; done
nft list tables 2>/dev/null | sed 's/^/nft /'
ipset list -n 2>/dev/null | sed 's/^/ipset /'
systemctl list-unit-files --no-legend --no-pager | awk '{print "unit", $1, $2}'
cut -d: -f1 /etc/passwd | sed 's/^/user /'
cut -d: -f1 /etc/group | sed 's/^/group /'
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
	{"the host's own doing: sessions and logs",
		`^(file|mount) /(tmp/systemd-private-\S+|var/tmp/systemd-private-\S+|run/(systemd|user|log|lock|sudo|udev|credentials|dbus|sshd|utmp|motd\.dynamic)|var/log/(journal|lastlog|wtmp|btmp|private)|var/lib/(systemd|private))(/| )`},
	{"packages of the distribution, which others may use by now, and what apt writes",
		`^(package \S+$|(file|content) (/etc/ld\.so\.cache|/var/(cache|lib|log)/apt/\S+|/var/cache/ldconfig/aux-cache|/var/log/(dpkg|alternatives)\.log) )`},
	{"the copies that useradd and userdel keep of the lists of users, which are as before",
		`^(file|content) /etc/(passwd|shadow|group|gshadow|subuid|subgid)- `},
	{"folders and locks that any program makes, gone with the next boot", `^file /run/(netns|xtables\.lock) `},
	{"a folder that kube-proxy looks into: hosts with a kernel of their own have it", `^file /usr/lib/modules d `},
	{"the mode of containerd's folder, which is a disk of the lab", `^file /var/lib/containerd d `},
	{"processes that come and go", `^process (\(sd-pam\)|ps|sh|sed|sort|sshd|systemd.*|cron|sudo|agetty|dbus-daemon)$`},
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
		t.Errorf("%s is not as it was (%d differences):\n%s", host, len(faults),
			strings.Join(faults[:min(200, len(faults))], "\n"))
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
		c.exec(t, n, "rm -f /root/hooks") // which the hooks of the test wrote
		sameBut(t, c.name(n), l, c.listing(t, n))
	}
}
