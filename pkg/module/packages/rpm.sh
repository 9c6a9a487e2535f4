# shellcheck shell=sh disable=SC2154
# dnf_main NAME...: packages of hosts with rpm.
rpm_root() { rpm ${p_installroot:+--root "$p_installroot"} "$@"; }
rpm_has() { # NAME
	case $1 in
	@*) return 1 ;;
	*/*.rpm)
		[ -f "$1" ] || return 1
		id=$(rpm -qp --qf '%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}' "$1" 2>/dev/null) || return 1
		rpm_root -q --quiet "$id"
		return
		;;
	*'*'*) [ -n "$(rpm_root -qa "$1" 2>/dev/null)" ] && return ;;
	esac
	rpm_root -q --quiet "$1" >/dev/null 2>&1 || rpm_root -q --quiet --whatprovides "$1" >/dev/null 2>&1
}
rpm_pick() { # STATE NAME...: sets $picked to the arguments that need a change
	state=$1
	shift
	for word; do
		shift
		case $state in
		absent) case $word in @*) set -- "$@" "$word" ;; *) ! rpm_has "$word" || set -- "$@" "$word" ;; esac ;;
		latest) set -- "$@" "$word" ;;
		*) rpm_has "$word" || set -- "$@" "$word" ;;
		esac
	done
	[ $# -gt 0 ] || return 0
	say acted 1
	"$manager" "$state" "$@"
}
dnf_lock() { # waits for another dnf or yum
	waited=0
	for lock in /run/yum.pid /var/run/yum.pid /var/cache/dnf/metadata_lock.pid /var/cache/dnf/download_lock.pid /var/lib/dnf/rpmdb_lock.pid; do
		while [ -s "$lock" ] && kill -0 "$(cat "$lock")" 2>/dev/null; do
			[ "$waited" -lt "${p_lock_timeout:-30}" ] || fail "$dnf lockfile is held by another process ($lock)"
			sleep 1
			waited=$((waited + 1))
		done
	done
}
dnf_get() { # WORDS...: runs dnf with the options of the task
	for repo in $p_enablerepo; do set -- "--enablerepo=$repo" "$@"; done
	for repo in $p_disablerepo; do set -- "--disablerepo=$repo" "$@"; done
	for pattern in $p_exclude; do set -- "--exclude=$pattern" "$@"; done
	[ -z "$p_disable_gpg_check" ] || set -- --nogpgcheck "$@"
	[ -z "$p_nobest" ] || set -- --nobest "$@"
	[ -z "$p_allowerasing" ] || set -- --allowerasing "$@"
	[ -z "$p_installroot" ] || set -- "--installroot=$p_installroot" "$@"
	for plugin in $p_enable_plugin; do set -- "--enableplugin=$plugin" "$@"; done
	for plugin in $p_disable_plugin; do set -- "--disableplugin=$plugin" "$@"; done
	[ -z "$p_conf_file" ] || set -- -c "$p_conf_file" "$@"
	[ -z "$p_releasever" ] || set -- "--releasever=$p_releasever" "$@"
	[ -z "$p_disable_excludes" ] || set -- "--disableexcludes=$p_disable_excludes" "$@"
	[ -z "$p_download_dir" ] || set -- "--downloaddir=$p_download_dir" "$@"
	[ -z "$p_skip_broken" ] || set -- --skip-broken "$@"
	[ -z "$p_security" ] || set -- --security "$@"
	[ -z "$p_bugfix" ] || set -- --bugfix "$@"
	[ "$p_sslverify$p_validate_certs" = 11 ] || set -- --setopt=sslverify=0 "$@"
	[ -n "$p_install_weak_deps" ] || set -- --setopt=install_weak_deps=0 "$@"
	[ -z "$p_cacheonly" ] || set -- -C "$@"
	[ -z "$p_download_only" ] || set -- --downloadonly "$@"
	scratch
	"$dnf" "$assume" "$@" >"$tmp/stdout" 2>"$tmp/stderr" </dev/null
	rc=$?
}
tool_said() {
	say stdout "$(cat "$tmp/stdout")"
	say stderr "$(cat "$tmp/stderr")"
	say rc "$rc"
}
dnf_do() { # WORDS...
	dnf_lock
	dnf_get "$@"
	tool_said
	[ "$rc" -eq 0 ] || fail "$(cat "$tmp/stderr")"
	case $(cat "$tmp/stdout") in *'Nothing to do'* | *'No packages marked for update'* | *'No match for argument'*) ;; *) say changed 1 ;; esac
}
dnf_act() { # STATE NAME...
	state=$1
	shift
	if [ "$state" = latest ] && [ -n "$p_update_only" ]; then # dnf fails for missing packages
		for word; do
			shift
			! rpm_has "$word" || set -- "$@" "$word"
		done
		[ $# -gt 0 ] || return 0
	fi
	if [ -n "$p_check" ]; then
		dnf_predict "$state" "$@"
		return
	fi
	case $state in
	absent) if [ -n "$p_autoremove" ]; then dnf_do autoremove -- "$@"; else dnf_do remove -- "$@"; fi ;;
	latest)
		dnf_missing "$@"
		dnf_do "${p_upgrade_verb:-upgrade}" -- "$@"
		;;
	*) dnf_install "$@" ;;
	esac
}
dnf_install() {
	if [ -n "$p_allow_downgrade" ]; then
		dnf_do install --setopt=allow_downgrade=1 -- "$@"
	else
		dnf_do install -- "$@"
	fi
}
dnf_missing() { # NAME...: installs missing packages; upgrade would not
	for word; do
		shift
		rpm_has "$word" || set -- "$@" "$word"
	done
	[ $# -eq 0 ] || dnf_install "$@"
}
dnf_predict() { # STATE NAME...: dnf resolves the transaction, and does not run it
	state=$1 verb=install
	shift
	case $state in
	absent) verb=remove ;;
	latest)
		verb=${p_upgrade_verb:-upgrade}
		for word; do
			rpm_has "$word" || verb=install # install would not upgrade it, but it is a change
		done
		;;
	esac
	assume=--assumeno
	dnf_get "$verb" -- "$@"
	case $rc,$(cat "$tmp/stdout" "$tmp/stderr") in
	*'peration aborted'* | *'Exiting on user command'*) say changed 1 ;;
	0,*) ;;
	*)
		tool_said
		fail "$(cat "$tmp/stderr")"
		;;
	esac
}
dnf_find() { # sets $dnf
	dnf='' assume=-y
	for candidate in dnf dnf5 yum microdnf; do
		has "$candidate" || continue
		dnf=$candidate
		break
	done
	set -f # lists of options are not patterns of files
	[ -n "$dnf" ] || fail "neither dnf nor yum is installed on the host"
	has rpm || fail "rpm is not installed on the host"
}
dnf_refresh() {
	[ -n "$p_update_cache" ] && [ -z "$p_check" ] || return 0
	dnf_lock
	dnf_get makecache
	[ "$rc" -eq 0 ] || fail "update the cache: $(cat "$tmp/stderr")"
}
dnf_ask() { # ARGS...: runs a list command of dnf
	dnf_lock
	dnf_get -q "$@"
	[ "$rc" -eq 0 ] || fail "$(cat "$tmp/stderr")"
	say list "$(cat "$tmp/stdout")"
}
dnf_installed() { # [PATTERN]: as lines NAME|EPOCH|VERSION|RELEASE|ARCH|REPOSITORY
	say list "$(rpm_root -qa --qf '%{NAME}|%{EPOCHNUM}|%{VERSION}|%{RELEASE}|%{ARCH}|@System\n' "$@" 2>/dev/null | grep -v '^gpg-pubkey|')"
}
dnf_list() {
	dnf_find
	dnf_refresh
	format='%{name}|%{epoch}|%{version}|%{release}|%{arch}|%{repoid}\n'
	case $p_list in
	installed) dnf_installed ;;
	available) dnf_ask repoquery --available --qf "$format" ;;
	updates | upgrades) dnf_ask repoquery --upgrades --qf "$format" ;;
	repos | repositories) dnf_ask repolist --enabled ;;
	*)
		dnf_installed "$p_list"
		dnf_ask repoquery --available --qf "$format" -- "$p_list"
		;;
	esac
}
dnf_main() {
	dnf_find
	manager=dnf_act
	dnf_refresh
	if [ $# -eq 0 ] && [ -n "$p_autoremove" ]; then
		[ -z "$p_check" ] || fail "check mode cannot predict what autoremove would remove: set name"
		dnf_do autoremove
		return
	fi
	[ $# -eq 0 ] || rpm_pick "$p_state" "$@"
}
