# shellcheck shell=sh disable=SC2016,SC2154
# Lists of installed packages: a line for each, fields separated by tabs.
list_apt() {
	has dpkg-query || return 1
	dpkg-query -W -f '${db:Status-Abbrev}\t${Package}\t${Version}\t${Architecture}\t${Section}\n' 2>/dev/null | grep '^[ih]i'
}
list_rpm() {
	has rpm || return 1
	rpm -qa --qf '%{NAME}\t%{VERSION}\t%{RELEASE}\t%{EPOCH}\t%{ARCH}\n'
}
list_apk() {
	has apk || return 1
	apk info -v 2>/dev/null
}
package_facts_main() { # MANAGER...: in the order in which to look
	for manager; do
		listed=$("list_$manager") || continue
		say available "$manager"
		[ -n "$listed" ] || continue
		say "list_$manager" "$listed"
		[ "$p_strategy" = all ] || return 0
	done
}
