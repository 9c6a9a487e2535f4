# shellcheck shell=sh disable=SC2016,SC2154
# Lists of installed packages: a line for each, fields separated by tabs.
list_apt() {
	has dpkg-query || return 1
	dpkg-query -W -f '${db:Status-Abbrev}\t${Package}\t${Version}\t${Architecture}\t${Section}\t${binary:Package}\n' 2>/dev/null | grep '^[ih]i'
}
origins_apt() { # of repositories, then of installed versions
	has apt-cache || return 0
	apt-cache policy 2>/dev/null
	dpkg-query -W -f '${db:Status-Abbrev} ${binary:Package}\n' 2>/dev/null | sed -n 's/^[ih]i. *//p' | xargs apt-cache policy -- 2>/dev/null
}
list_rpm() {
	has rpm || return 1
	rpm -qa --qf '%{NAME}\t%{VERSION}\t%{RELEASE}\t%{EPOCH}\t%{ARCH}\n'
}
list_apk() {
	has apk || return 1
	apk info -v 2>/dev/null
}
package_facts_main() { # MANAGER...: in search order
	for manager; do
		listed=$("list_$manager") || continue
		say available "$manager"
		[ -n "$listed" ] || continue
		say "list_$manager" "$listed"
		[ "$manager" != apt ] || say origins "$(origins_apt)"
		[ "$p_strategy" = all ] || return 0
	done
}
