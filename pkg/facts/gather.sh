# shellcheck disable=SC2086,SC2231,SC3013 # names of this system have no blanks; every test has -ef
# Prints what this host is, in sections that start with a line "MARK name".
# $1 mark, $2 wanted subsets between blanks, $3 folder of custom facts, $4 seconds for slow commands.
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/sbin:/sbin:/usr/bin:/bin
mark=$1 wanted=$2 factdir=$3 limit=$4
s() { printf '\n%s %s\n' "$mark" "$*"; }
want() { case $wanted in *" $1 "*) return 0 ;; esac; return 1; }
has() { command -v "$1" >/dev/null 2>&1; }
show() { for f; do [ -r "$f" ] && cat "$f" 2>/dev/null && return; done; }
val() { v=; [ -r "$2" ] && { IFS= read -r v <"$2"; } 2>/dev/null; [ -z "$v" ] || printf '%s=%s\n' "$1" "$v"; }
slow() { if has timeout; then timeout "$limit" "$@" 2>/dev/null </dev/null; else "$@" 2>/dev/null </dev/null; fi; }

s uname; uname -s; uname -n; uname -r; uname -m; uname -v
s date; date +%s; date +%z; date +%Z
if want min; then
s os-release; show /etc/os-release /usr/lib/os-release
s debian_version; show /etc/debian_version
s centos-release; show /etc/centos-release
s lsb-release; show /etc/lsb-release
s fqdn; slow hostname -f
s cmdline; show /proc/cmdline
s init
val comm /proc/1/comm
[ -d /run/systemd/system ] && echo systemd=1
[ -x /sbin/openrc ] && echo openrc=1
s pkg
for p in apt-get dnf yum zypper apk pacman; do has $p && echo $p; done
s user; id -u; id -g; id -un; id -gn
s passwd; u=$(id -un); grep "^$u:" /etc/passwd 2>/dev/null || slow getent passwd "$u"
s env; env
s resolv; show /etc/resolv.conf
s selinux
if [ -d /sys/fs/selinux ]; then
val enforce /sys/fs/selinux/enforce; val policyvers /sys/fs/selinux/policyvers; echo present=1
grep -E '^SELINUX(TYPE)?=' /etc/selinux/config 2>/dev/null
fi
s security
val fips /proc/sys/crypto/fips_enabled; val apparmor /sys/module/apparmor/parameters/enabled; val machine_id /etc/machine-id
[ -r /proc/1/root/. ] && [ ! / -ef /proc/1/root/. ] && echo chroot=1
s hostkeys
for f in /etc/ssh/ssh_host_*_key.pub; do [ -r "$f" ] && { printf '%s ' "$f"; cat "$f"; }; done
[ "$(uname -s)" = Darwin ] && { s darwin; sw_vers -productVersion; sysctl -n hw.memsize hw.ncpu; }
fi
if want hardware; then
s meminfo; show /proc/meminfo
s cpuinfo; show /proc/cpuinfo
s uptime; show /proc/uptime
s mounts; show /proc/mounts
s df; slow df -Pk
s uuids
for l in /dev/disk/by-uuid/*; do [ -h "$l" ] && printf '%s %s\n' "$(readlink "$l")" "$l"; done
s dmi
for n in sys_vendor product_name product_version product_serial product_uuid bios_date bios_vendor bios_version board_name board_vendor chassis_vendor; do
val $n /sys/class/dmi/id/$n
done
s block
for d in /sys/block/*; do
case ${d##*/} in loop*|ram*|zram*|'*') continue ;; esac
echo "disk=${d##*/}"
val sectors $d/size; val sectorsize $d/queue/logical_block_size; val removable $d/removable; val rotational $d/queue/rotational
val model $d/device/model; val vendor $d/device/vendor; val discard $d/queue/discard_granularity
for p in $d/*/partition; do
[ -r "$p" ] || continue
p=${p%/partition}; echo "part=${p##*/}"
val psectors $p/size; val pstart $p/start
done
for h in $d/holders/*; do [ -e "$h" ] && echo "holder=${h##*/}"; done
done
fi
if want network; then
s links
for d in /sys/class/net/*; do
[ -d "$d" ] || continue
echo "link=${d##*/}"
val mac $d/address; val mtu $d/mtu; val state $d/operstate; val flags $d/flags; val kind $d/type; val speed $d/speed
[ -d $d/bridge ] && echo bridge=1
[ -d $d/bonding ] && echo bonding=1
for m in $d/brif/* $d/lower_*; do [ -e "$m" ] && { m=${m##*/}; echo "member=${m#lower_}"; }; done
done
s addr
if has ip; then ip -o addr show 2>/dev/null; else echo none; show /proc/net/fib_trie; fi
s if_inet6; show /proc/net/if_inet6
s route; show /proc/net/route
s route6; show /proc/net/ipv6_route
s src; has ip && ip route get 8.8.8.8 2>/dev/null
fi
if want virtual; then
s virt
has systemd-detect-virt && { printf 'systemd='; systemd-detect-virt 2>/dev/null; }
[ -e /.dockerenv ] && echo docker=1
[ -e /run/.containerenv ] && echo podman=1
[ -d /proc/vz ] && [ ! -d /proc/bc ] && echo openvz=1
val sys_vendor /sys/class/dmi/id/sys_vendor; val product_name /sys/class/dmi/id/product_name
grep -qw hypervisor /proc/cpuinfo 2>/dev/null && echo hypervisor=1
grep -q '^kvm ' /proc/modules 2>/dev/null && echo kvm_host=1
s cgroup; show /proc/1/cgroup
s init_environ; tr '\0' '\n' </proc/1/environ 2>/dev/null | grep '^container='
fi
if want local; then
for f in "$factdir"/*.fact; do
[ -r "$f" ] || continue
s local "${f##*/}"
if [ -x "$f" ]; then slow "$f"; rc=$?; else cat "$f"; rc=0; fi
s localrc "${f##*/}"; echo $rc
done
fi
s end
exit 0
