# shellcheck shell=sh disable=SC2034,SC2154
# known: the address of the repository as helm has it is the variable url, with
# an error that is not that there are no repositories in the answer.
known() {
	if ! "$p_binary_path" repo list -o yaml >"$tmp/out" 2>"$tmp/err"; then
		grep -q 'no repositories to show' "$tmp/err" && return
		tell error "$tmp/err"
		exit 0
	fi
	# - name: a
	#   url: b
	url=$(awk -v name="$p_repo_name" '
		{ key = $0; sub(/^[- ]*/, "", key) }
		key == "name: " name || key == "name: \"" name "\"" { mine = 1; next }
		mine && sub(/^url: /, "", key) { gsub(/^"|"$/, "", key); print key; exit }' "$tmp/out")
}
# change COMMAND...: does it, but not in check mode.
change() {
	say changed 1
	[ -z "$p_check" ] || return 0
	if "$@" >"$tmp/out" 2>"$tmp/err"; then
		tell stdout "$tmp/out"
	else
		tell error "$tmp/err"
	fi
}
helm_repository() {
	KUBECONFIG='' # none is needed
	missing "$p_binary_path"
	known
	if [ "$p_repo_state" = absent ]; then
		[ -z "$url" ] || change "$p_binary_path" repo remove "$p_repo_name"
		return
	fi
	if [ -n "$url" ] && [ -z "$p_force_update" ]; then
		[ "$url" = "$p_repo_url" ] || say other "$url"
		return
	fi
	change "$p_binary_path" repo add "$p_repo_name" "$p_repo_url" ${p_repo_username:+--username="$p_repo_username" --password-stdin} ${p_pass_credentials:+--pass-credentials} ${p_force_update:+--force-update}
}
