# shellcheck shell=sh disable=SC2154
# Locales stand in /etc/locale.gen, in use or commented out; Ubuntu has a
# folder of lists instead.
locale_flat() { printf '%s' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/\.utf-\{0,1\}8/.utf8/;s/\.iso-\{0,1\}8859-/.iso8859/'; }
locale_present() {
	want=$(locale_flat "$p_name")
	locale -a 2>/dev/null >"$tmp/all"
	while IFS= read -r one; do
		[ "$(locale_flat "$one")" != "$want" ] || return 0
	done <"$tmp/all"
	return 1
}
locale_gen_main() {
	scratch
	ubuntu=/var/lib/locales/supported.d
	has locale-gen || not_yet "there is no locale-gen on the host: install locales"
	if [ -d $ubuntu ]; then
		list=/usr/share/i18n/SUPPORTED
	else
		list=/etc/locale.gen
		[ -e "$list" ] || {
			not_yet "/etc/locale.gen and $ubuntu/local are missing. Is the package \"locales\" installed?"
			say changed 1
			return
		}
	fi
	pattern=$(printf '%s' "$p_name" | sed 's/[.*[\^$]/\\&/g')
	grep -q "^#\{0,1\} *$pattern \{1,\}." "$list" || grep -qs "^$pattern \{1,\}." /usr/share/i18n/SUPPORTED ||
		fail "The locale you've entered is not available on your system."
	if locale_present; then now=present; else now=absent; fi
	[ "$now" != "$p_state" ] || return 0
	say changed 1
	[ -z "$p_check" ] || return 0
	if [ -d $ubuntu ]; then locale_ubuntu; else locale_debian; fi
}
locale_debian() {
	if [ "$p_state" = present ]; then
		if grep -q "^#\{0,1\} *$pattern \{1,\}." "$list"; then
			sed "s/^# *\($pattern  *.*\)/\1/" "$list" | replace "$list" 644
		else
			{
				cat "$list"
				grep "^$pattern \{1,\}." /usr/share/i18n/SUPPORTED
			} | replace "$list" 644
		fi
	else
		sed "s/^\($pattern  *.*\)/# \1/" "$list" | replace "$list" 644
	fi || fail "write $list"
	quiet locale-gen || fail "generate locales: $(output)"
}
locale_ubuntu() {
	if [ "$p_state" = present ]; then
		quiet locale-gen "$p_name" || fail "generate the locale: $(output)"
		return
	fi
	grep -v "^$pattern  *" "$ubuntu/local" | replace "$ubuntu/local" 644 || fail "write $ubuntu/local"
	quiet locale-gen --purge || fail "generate locales: $(output)"
}
