# shellcheck shell=sh disable=SC2154
# package_main NAME...: packages, with the package manager of the host.
package_main() {
	manager=$p_use
	if [ "$manager" = auto ]; then
		manager=''
		for pair in apt-get:apt dnf:dnf dnf5:dnf yum:dnf zypper:zypper apk:apk microdnf:dnf; do
			has "${pair%:*}" || continue
			manager=${pair#*:}
			break
		done
	fi
	case $manager in
	'') fail "the host has none of apt-get, dnf, yum, zypper and apk" ;;
	yum | dnf5) manager=dnf ;;
	esac
	say manager "$manager"
	"${manager}_main" "$@"
}
