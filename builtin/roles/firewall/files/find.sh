#!/bin/sh
# Prints the firewall that is active on the host, and what it lets in. The first line is firewalld, ufw, or nothing; then:
# zone NAME, enabled, policies, open PORT/PROTOCOL, open PROTOCOL, open all, trusted SOURCE, pods SOURCE, interface NAME.
# The sources of single ports are not compared: what a firewall lets in from one network is open.
# INTERFACE is the one with the host's address.
export LC_ALL=C

# Words of standard input, one per line, after a prefix.
each() { tr -s ' \t' '\n' | sed -n "s|.|$1 &|p"; }

# A line of what firewall-cmd lists.
line() { printf '%s\n' "$2" | sed -n "s/^ *$1: //p"; }

# Ports and protocols of a service of firewalld, and of those that it includes.
service() {
  info=$(firewall-cmd --info-service="$1" 2>/dev/null) || return 0
  line '\(ports\|protocols\)' "$info" | each open
  line includes "$info" | each '' | while read -r included; do service "$included"; done
}

firewalld() {
  zone=$(firewall-cmd --get-zone-of-interface="$INTERFACE" 2>/dev/null) || zone=$(firewall-cmd --get-default-zone)
  all=$(firewall-cmd --zone="$zone" --list-all 2>/dev/null)
  rules=$(printf '%s\n' "$all" | sed -n 's/^[[:space:]]*\(rule .*accept.*\)/\1/p')
  echo firewalld
  echo "zone $zone"
  systemctl is-enabled firewalld 2>/dev/null | grep -x enabled
  firewall-cmd --get-policies >/dev/null 2>&1 && echo policies
  [ "$(line target "$all")" != ACCEPT ] || echo open all
  line ports "$all" | each open
  line protocols "$all" | each open
  printf '%s\n' "$rules" | sed -n 's/.* port port="\([^"]*\)" protocol="\([^"]*\)".*/open \1\/\2/p'
  {
    line services "$all" | each ''
    printf '%s\n' "$rules" | sed -n 's/.* service name="\([^"]*\)".*/\1/p'
  } | while read -r name; do service "$name"; done
  firewall-cmd --zone=trusted --list-sources | each trusted
  firewall-cmd --zone=trusted --list-interfaces | each interface
  firewall-cmd --zone=kubekey-pods --list-sources 2>/dev/null | each pods
}

ufw_rules() {
  echo ufw
  ufw status verbose | awk '
    /^Default: allow \(incoming\)/ { print "open all" }
    !/ (ALLOW|LIMIT) IN  / || / on [^ ]+ +(ALLOW|LIMIT)/ { next }
    {
      sub(/ +#.*/, "")
      to = $0; sub(/ +(ALLOW|LIMIT) IN .*/, "", to)
      from = $0; sub(/.* (ALLOW|LIMIT) IN +/, "", from); sub(/ +$/, "", from)
      if (to ~ /^Anywhere/) {
        if (from ~ /^Anywhere/) print "open all"; else print "trusted " from
        next
      }
      sub(/ .*/, "", to)
      n = split(to, part, "/")
      gsub(/:/, "-", part[1])
      count = split(part[1], port, ",")
      for (i = 1; i <= count; i++) {
        if (n == 1 || part[2] == "tcp") print "open " port[i] "/tcp"
        if (n == 1 || part[2] == "udp") print "open " port[i] "/udp"
      }
    }' | sort -u
}

if firewall-cmd --state >/dev/null 2>&1; then
  firewalld
elif ufw status 2>/dev/null | grep -q '^Status: active'; then
  ufw_rules
fi
exit 0
