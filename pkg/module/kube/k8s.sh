# shellcheck shell=sh disable=SC2154
# Discovery is cached in the script's own folder: nothing of it stays on the
# host, and it is never older than the script.
kc() {
	"$p_kubectl" --cache-dir="$tmp/cache" ${p_kubeconfig:+--kubeconfig="$p_kubeconfig"} ${p_context:+--context="$p_context"} "$@"
}
# objects: standard input, one object a line, becomes the folder $tmp/o and the file $tmp/all.json.
objects() {
	cat >"$tmp/all.json"
	mkdir "$tmp/o" && split -l 1 -a 4 "$tmp/all.json" "$tmp/o/"
}
get_all() { # what the cluster has of the objects; kinds it does not know are not there
	kc get -f "$tmp/all.json" --ignore-not-found -o json --request-timeout=60s >"$tmp/live" 2>"$tmp/live.err"
	say live_rc $?
	tell live "$tmp/live"
	tell live_err "$tmp/live.err"
}
apply() {
	kc apply --server-side --field-manager="$p_manager" ${p_force:+--force-conflicts} ${p_check:+--dry-run=server} \
		-o json -f "$1" --request-timeout=60s >"$tmp/out" 2>"$tmp/err"
}
# apply_all sends all objects at once. If any is refused, each is sent alone, so
# that the others are applied and the error says whose it is.
apply_all() {
	if apply "$tmp/all.json"; then
		tell all "$tmp/out"
		tell warn "$tmp/err"
		return
	fi
	for o in "$tmp"/o/*; do
		if apply "$o"; then
			tell one "$tmp/out"
			tell warn "$tmp/err"
		else
			tell refused "$tmp/err"
		fi
	done
}
delete_all() {
	kc delete -f "$tmp/all.json" --ignore-not-found --wait="$p_wait" --timeout="$p_timeout" >"$tmp/out" 2>"$tmp/err"
	say rc $?
	tell err "$tmp/err"
}
k8s_apply() {
	missing "$p_kubectl"
	objects
	get_all
	apply_all
}
k8s_get() {
	missing "$p_kubectl"
	objects
	get_all
}
k8s_delete() {
	missing "$p_kubectl"
	objects
	delete_all
}
k8s_info() {
	missing "$p_kubectl"
	set -- get "$p_kind"
	[ -z "$p_name" ] || set -- "$@" "$p_name"
	if [ -n "$p_namespace" ]; then
		set -- "$@" "--namespace=$p_namespace"
	elif [ -z "$p_name" ]; then
		set -- "$@" --all-namespaces
	fi
	[ -z "$p_labels" ] || set -- "$@" "--selector=$p_labels"
	[ -z "$p_fields" ] || set -- "$@" "--field-selector=$p_fields"
	kc "$@" --ignore-not-found -o json --request-timeout=60s >"$tmp/out" 2>"$tmp/err"
	say rc $?
	tell found "$tmp/out"
	tell err "$tmp/err"
}
