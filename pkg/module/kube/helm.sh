# shellcheck shell=sh disable=SC2154
# What helm learns of the API is cached in the script's own folder, as in k8s.sh.
export KUBECACHEDIR="$tmp/cache"
h() { "$p_binary" "$@" ${p_kubeconfig:+--kubeconfig="$p_kubeconfig"} ${p_context:+--kube-context="$p_context"}; }
# must KEY COMMAND...: the command's output is a field; if it fails, its errors are.
must() {
	key=$1
	shift
	if "$@" >"$tmp/out" 2>"$tmp/err"; then
		tell "$key" "$tmp/out"
		return
	fi
	tell error "$tmp/err"
	exit 0
}
begin() {
	missing "$p_binary"
	if ! mkdir "$tmp/in" || ! tar -xf - -C "$tmp/in"; then
		say fail "unpack what was sent: does the host have tar, and space in /tmp?"
		exit 0
	fi
	if [ -n "$p_update_repo_cache" ] && [ -z "$p_check" ]; then
		must updated h repo update
	fi
	[ -z "$p_own_cache" ] || export HELM_CACHE_HOME="$tmp/helm"
	cd "$tmp/in" || exit 1
	[ -z "$p_dependencies" ] || must dependencies h dependency update ./chart
}
# look_up: the release as helm list has it; status and revision are variables.
look_up() {
	must list h list --all --namespace="$p_namespace" --filter "^$p_name\$" -o json
	status=$(sed -n 's/.*"status":"\([a-z-]*\)".*/\1/p' "$tmp/out")
}
# recover makes an end to what an interrupted run has left, but not in check mode.
recover() {
	case $status in
	pending-install | uninstalling)
		[ -z "$p_check" ] || return
		must recovered h uninstall "$p_name" --namespace="$p_namespace" --wait --timeout="$p_timeout"
		status=
		;;
	pending-upgrade | pending-rollback)
		[ -z "$p_check" ] || return
		must history h history "$p_name" --namespace="$p_namespace" --max 256 -o json
		good=$(tr '{' '\n' <"$tmp/out" | sed -n 's/.*"revision":\([0-9]*\),.*"status":"deployed".*/\1/p' | tail -n 1)
		must recovered h rollback "$p_name" ${good:+"$good"} --namespace="$p_namespace" --timeout="$p_timeout"
		status=deployed
		;;
	uninstalled) status= ;;
	esac
}
upgrade() { deploy upgrade --install ${p_old_values:+"$p_old_values"} ${p_history_max:+--history-max="$p_history_max"} "$@"; }
deploy() { # COMMAND ARGUMENT...
	set -- "$@" "$p_name" "$p_chart" --namespace="$p_namespace" -o json
	for v in values-*; do
		[ ! -e "$v" ] || set -- "$@" --values="$v"
	done
	[ -z "$p_version" ] || set -- "$@" --version="$p_version"
	[ -z "$p_repo_url" ] || set -- "$@" --repo="$p_repo_url"
	[ -z "$p_create_namespace" ] || set -- "$@" --create-namespace
	[ -z "$p_skip_crds" ] || set -- "$@" --skip-crds
	[ -z "$p_force" ] || set -- "$@" --force
	[ -z "$p_disable_hook" ] || set -- "$@" --no-hooks
	[ -z "$p_post_renderer" ] || set -- "$@" --post-renderer="$p_post_renderer"
	for v in set-*; do # set-001, set-string-002, ...
		[ ! -e "$v" ] || set -- "$@" "--${v%-*}" "$(cat "$v")"
	done
	h "$@"
}
render() {
	if upgrade --dry-run=server >"$tmp/out" 2>"$tmp/err"; then
		tell next "$tmp/out"
	else
		tell unrendered "$tmp/err"
	fi
}
helm_look() {
	begin
	look_up
	recover
	say status "$status"
	case $status in
	'')
		[ -z "$p_render" ] || render
		;;
	pending-* | uninstalling) ;;
	*)
		must now h status "$p_name" --namespace="$p_namespace" -o json
		render
		;;
	esac
}
helm_act() {
	begin
	set --
	[ -z "$p_wait" ] || set -- "$@" --wait --wait-for-jobs
	[ -z "$p_atomic" ] || set -- "$@" --atomic
	if [ -n "$p_replace" ]; then
		must output deploy install --replace "$@" --timeout="$p_timeout"
	else
		must output upgrade "$@" --timeout="$p_timeout"
	fi
	look_up
}
helm_absent() {
	missing "$p_binary"
	look_up
	say status "$status"
	case $status in '' | uninstalled) return ;; esac
	set --
	[ -n "$p_purge" ] || set -- --keep-history
	[ -n "$p_check" ] || must output h uninstall "$p_name" --namespace="$p_namespace" --timeout="$p_timeout" ${p_wait:+--wait} ${p_disable_hook:+--no-hooks} "$@"
}
