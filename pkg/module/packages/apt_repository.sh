# shellcheck shell=sh disable=SC2154
apt_repository_read() {
	has apt-get || fail "apt-get is not installed on the host"
	# shellcheck disable=SC1091
	say codename "$(. /etc/os-release 2>/dev/null && printf %s "${UBUNTU_CODENAME:-$VERSION_CODENAME}")"
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[ -f "$file" ] || continue
		text=$(cat "$file" && printf x) || fail "read $file"
		say file "$file"
		say text "$text"
	done
}
# apt_refresh: updates the package lists, and retries with increasing delay.
apt_refresh() {
	DEBIAN_FRONTEND=noninteractive
	export DEBIAN_FRONTEND
	tried=0 pause=1
	while ! apt_get update -q -o APT::Update::Error-Mode=any; do
		[ "$tried" -lt "${p_retries:-5}" ] || fail "Failed to update apt cache: $(cat "$tmp/stderr")"
		tried=$((tried + 1))
		[ "$pause" -le "${p_max_delay:-12}" ] || pause=${p_max_delay:-12}
		sleep "$pause"
		pause=$((pause * 2))
	done
}
