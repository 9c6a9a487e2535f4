# shellcheck disable=SC2086,SC2231,SC3013 # names of this system have no blanks; every test has -ef
# Prints what this host is, in sections that start with a line "MARK name".
# $1 mark, $2 requested subsets, each between blanks, $3 folder of custom facts, $4 seconds for slow commands.
mark=$1 subsets=$2 factdir=$3 limit=$4
s() { printf '\n%s %s\n' "$mark" "$*"; }
want() { case $subsets in *" $1 "*) return 0 ;; esac; return 1; }
has() { command -v "$1" >/dev/null 2>&1; }
show() { for f; do [ -r "$f" ] && cat "$f" 2>/dev/null && return; done; }
val() { v=; [ -r "$2" ] && { IFS= read -r v <"$2"; } 2>/dev/null; [ -z "$v" ] || printf '%s=%s\n' "$1" "$v"; }
slow() { if has timeout; then timeout "$limit" "$@" 2>/dev/null </dev/null; else "$@" 2>/dev/null </dev/null; fi; }

want min && { s env; env -0 2>/dev/null || env; } # before anything here changes it
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/sbin:/sbin:/usr/bin:/bin
s uname; system=$(uname -s); echo "$system"; uname -n; uname -r; uname -m; uname -v
s date; date +%s; date +%z; date +%Z
if want min; then
s os-release; show /etc/os-release /usr/lib/os-release
s debian_version; show /etc/debian_version
s centos-release; show /etc/centos-release
s lsb-release; show /etc/lsb-release
s lsb; has lsb_release && slow lsb_release -a
s fqdn; slow hostname -f
s cmdline; show /proc/cmdline
s init
val comm /proc/1/comm
[ -d /run/systemd/system ] && echo systemd=1
[ -x /sbin/openrc ] && echo openrc=1
s pkg
for p in apt-get dnf yum zypper apk pacman; do has $p && echo $p; done
s user; i=$(id -u) u=$(id -un); echo "$i"; id -g; echo "$u"; id -gn
s passwd; grep "^$u:" /etc/passwd 2>/dev/null || slow getent passwd "$u"
s resolv; show /etc/resolv.conf
s selinux
if [ -d /sys/fs/selinux ]; then
val enforce /sys/fs/selinux/enforce; val policyvers /sys/fs/selinux/policyvers; echo present=1
grep -E '^SELINUX(TYPE)?=' /etc/selinux/config 2>/dev/null
fi
s security
val fips /proc/sys/crypto/fips_enabled; val apparmor /sys/module/apparmor/parameters/enabled
val machine_id /etc/machine-id
[ -r /proc/1/root/. ] && [ ! / -ef /proc/1/root/. ] && echo chroot=1
s caps; has capsh && slow capsh --print
s glibc; has getconf && getconf GNU_LIBC_VERSION 2>/dev/null
s python; p=$(command -v python3) && { echo "$p"; slow python3 -V; }
s storage
val hostnqn /etc/nvme/hostnqn
grep '^InitiatorName=' /etc/iscsi/initiatorname.iscsi 2>/dev/null
for f in /sys/class/fc_host/*/port_name; do val wwn $f; done
s hostkeys
for f in /etc/ssh/ssh_host_*_key.pub; do [ -r "$f" ] && { printf '%s ' "$f"; cat "$f"; }; done
[ "$system" = Darwin ] && { s darwin; sw_vers -productVersion; sysctl -n hw.memsize hw.ncpu; }
fi
if want hardware; then
s meminfo; show /proc/meminfo
s cpuinfo; show /proc/cpuinfo
s uptime; show /proc/uptime
s loadavg; show /proc/loadavg
s mounts; show /proc/mounts
s df; slow df -Pk
s statfs
[ -r /proc/mounts ] && while read -r dev dir _; do
case $dev in /* | *:/*) slow stat -f -c '%S %b %a %c %d %n' "$dir" ;; esac
done </proc/mounts
for by in uuid id label; do
s ${by}s
for l in /dev/disk/by-$by/*; do [ -h "$l" ] && printf '%s %s\n' "$(readlink "$l")" "$l"; done
done
s masters
for l in /sys/block/*/slaves/*; do [ -e "$l" ] && { d=${l%/slaves/*}; printf '%s %s\n' "${l##*/}" "${d##*/}"; }; done
if has vgs && [ "$(id -u)" = 0 ]; then
s vgs; slow vgs --noheadings --nosuffix --units g --separator , -o vg_name,pv_count,lv_count,vg_size,vg_free
s lvs; slow lvs --noheadings --nosuffix --units g --separator , -o lv_name,vg_name,lv_size
s pvs; slow pvs --noheadings --nosuffix --units g --separator , -o pv_name,vg_name,pv_size,pv_free
fi
s dmi
for n in sys_vendor product_name product_version product_serial product_uuid bios_date bios_vendor bios_version \
board_name board_vendor board_version board_serial board_asset_tag \
chassis_vendor chassis_version chassis_serial chassis_asset_tag chassis_type; do
val $n /sys/class/dmi/id/$n
done
s block
for d in /sys/block/*; do
case ${d##*/} in loop*|ram*|zram*|'*') continue ;; esac
echo "disk=${d##*/}"
val sectors $d/size; val sectorsize $d/queue/logical_block_size
val removable $d/removable; val rotational $d/queue/rotational; val model $d/device/model
val vendor $d/device/vendor; val discard $d/queue/discard_granularity; val scheduler $d/queue/scheduler
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
[ -d $d/bridge ] && { echo bridge=1; val bridgeid $d/bridge/bridge_id; val stp $d/bridge/stp_state; }
[ -h $d/device ] && { p=$(readlink $d/device); echo "pciid=${p##*/}"; }
[ -d $d/bonding ] && echo bonding=1
[ -d $d/brif ] && of=brif/ || of=lower_
for m in $d/$of*; do [ -e "$m" ] && { m=${m##*/}; echo "member=${m#lower_}"; }; done
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
