# shellcheck disable=SC2016 # bash expands it
# Waits on this host for a port or a file. Prints "met", "late", or why it cannot check.
# $1 kind (port, drained, path, none), $2 desired state (present, absent), $3 host, $4 port, $5 path,
# $6 seconds in all, $7 between tries, $8 for one connection, $9 hex port, ${10} hex states, ${11} hex addresses to ignore
kind=$1 desired=$2 host=$3 port=$4 path=$5 total=$6 pause=$7 each=$8 hexport=$9
shift 9
states=$1 excluded=$2
has() { command -v "$1" >/dev/null 2>&1; }
limited() { if has timeout; then timeout "$each" "$@"; else "$@"; fi; }
listening() {
  for f in /proc/net/tcp /proc/net/tcp6; do
    [ -r $f ] || continue
    while read -r _ addr _ state _; do
      [ "$state" = 0A ] && [ "${addr##*:}" = "$hexport" ] && return 0
    done <$f
  done
  return 1
}
open() {
  if has bash; then limited bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$host" "$port" >/dev/null 2>&1
  elif has nc; then limited nc -w "$each" "$host" "$port" </dev/null >/dev/null 2>&1
  elif has busybox && busybox nc --help >/dev/null 2>&1; then limited busybox nc -w "$each" "$host" "$port" </dev/null >/dev/null 2>&1
  elif has curl; then
    curl -s --connect-timeout "$each" --max-time "$each" "telnet://$host:$port" </dev/null >/dev/null 2>&1
    case $? in 0 | 28) return 0 ;; esac
    return 1
  else
    case $host in 127.*|localhost|::1|0.0.0.0) listening ;; *) echo "cannot tell whether $host:$port is open: the host has none of bash, nc, busybox and curl"; exit 0 ;; esac
  fi
}
drained() {
  for f in /proc/net/tcp /proc/net/tcp6; do
    [ -r $f ] || continue
    while read -r _ addr remote state _; do
      [ "${addr##*:}" = "$hexport" ] || continue
      case " $states " in *" $state "*) ;; *) continue ;; esac
      case " $excluded " in *" ${remote%:*} "*) continue ;; esac
      return 1
    done <$f
  done
  return 0
}
there() { [ -e "$path" ] || [ -h "$path" ]; }
holds() {
  case $kind in
  port) open ;;
  drained) drained ;;
  path) there ;;
  *) return 1 ;;
  esac
}
# In hundredths of a second, by a clock that nobody sets where the host has one.
now() {
  if read -r up _ 2>/dev/null </proc/uptime; then
    echo $((${up%.*} * 100 + 1${up#*.} - 100))
  else
    echo "$(date +%s)00"
  fi
}
end=$(($(now) + total * 100))
[ -r /proc/uptime ] || [ "$total" = 0 ] || end=$((end + 99)) # the second began before
while :; do
  if holds; then state=present; else state=absent; fi
  [ "$kind" != none ] && [ $state = "$desired" ] && { echo met; exit 0; }
  [ "$(now)" -ge $end ] && { echo late; exit 0; }
  sleep "$pause"
done
