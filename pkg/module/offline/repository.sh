# shellcheck shell=sh disable=SC2154
# installed: prints NAME VERSION ARCH of the installed packages
installed() {
	if has dpkg-query; then
		dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version} ${Architecture}\n' | sed -n 's/^[ih]i *//p'
	elif has rpm; then
		rpm -qa --qf '%{NAME} %{EPOCHNUM}:%{VERSION}-%{RELEASE} %{ARCH}\n' | sed 's/ 0:/ /'
	fi
}
repository_main() { # DIRECTORY...
	say installed "$(installed)"
	for word; do step "create $word" mkdir -p -m 755 "$word"; done
}
