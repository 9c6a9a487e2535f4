# shellcheck shell=sh disable=SC2154
apt_conf() {
	mkdir -p "$root/lists/partial" "$root/archives/partial" || fail "create folders in $root"
	: >"$root/status" || fail "write $root/status"
	{
		# How the machine reaches its sources; none of its hooks, pins and other lists.
		apt-config dump | grep -E '^Acquire::(http|https|Retries|ForceIPv[46]|Check-Valid-Until|Check-Date)' |
			grep -v ' "";$'
		[ -z "$kk_proxy" ] || printf 'Acquire::%s::Proxy "%s";\n' http "$kk_proxy" https "$kk_proxy"
		cat <<END
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::State "$root";
Dir::State::lists "$root/lists";
Dir::State::status "$root/status";
Dir::State::extended_states "$root/extended_states";
Dir::Cache "$root";
Dir::Cache::archives "$root/archives";
APT::Architecture "$p_arch";
APT::Architectures { "$p_arch"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
APT::Get::Always-Include-Phased-Updates "true";
Acquire::Languages "none";
END
		[ -z "$lines" ] || cat <<END
Dir::Etc::sourcelist "$root/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::trusted "/dev/null";
Dir::Etc::trustedparts "/dev/null";
END
	} >"$root/apt.conf" || fail "write $root/apt.conf"
	[ -z "$lines" ] || printf '%s\n' "$lines" >"$root/sources.list" || fail "write $root/sources.list"
	APT_CONFIG=$root/apt.conf
	export APT_CONFIG
}
apt_run() { # WORDS...: apt-get, with its output in $tmp/out and $tmp/err
	scratch
	apt-get "$@" >"$tmp/out" 2>"$tmp/err" </dev/null && ! grep -q '^[WE]: Failed to fetch' "$tmp/err" && return
	fail "apt-get $1: $(grep '^[WE]:' "$tmp/err" || tail -n 20 "$tmp/err" "$tmp/out")"
}
apt_resolve() { # NAME...
	for program in apt-get apt-cache apt-config; do
		has $program || fail "$program is not installed: install apt, or resolve on a host that runs $p_distribution with \
--packages-on HOST"
	done
	choose_sources
	empty_root
	apt_conf
	apt_run update -q
	apt_run install -qq -y --print-uris -- "$@"
	say files "$(cat "$tmp/out")"
	# NAME_VERSION_ARCH.deb, with the colon of an epoch escaped
	# shellcheck disable=SC2046
	set -- $(sed -n "s/^'.*' \([^_ ]*\)_\([^_ ]*\)_[^_ ]*\.deb .*/\1=\2/p" "$tmp/out" | sed 's/%3a/:/g')
	[ $# -gt 0 ] || fail "apt-get install: nothing was resolved"
	apt-cache show --no-all-versions -- "$@" >"$tmp/records" 2>"$tmp/err" || fail "apt-cache show: $(cat "$tmp/err")"
	say records "$(cat "$tmp/records")"
}
apt_fetch() { # NAME=VERSION...
	APT_CONFIG=$p_dir/apt.conf
	export APT_CONFIG
	cd "$p_dir/fetched" || fail "open $p_dir/fetched"
	apt_run download -q -- "$@"
}
