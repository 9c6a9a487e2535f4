// Package net holds the modules that wait for services of the network, fetch
// from it, and keep the rules of a host's packet filter.
package net

import "kubekey/pkg/module"

// Modules describes wait_for, get_url, http_get_file, download, uri, git, subversion and iptables.
func Modules() []module.Spec {
	return []module.Spec{waitForSpec(), getURLSpec(), httpGetFileSpec(), downloadSpec(), uriSpec(), gitSpec(), subversionSpec(), iptablesSpec()}
}

func waitForSpec() module.Spec {
	return module.Spec{
		Name:    "wait_for",
		Summary: "Waits on the host until a port is open or closed, or a file is there or not.",
		Notes: []string{
			"The waiting is done on the host, in one command. A connection is tried with bash, nc, busybox or curl, whichever is there.",
			"search_regex reads at most the last 16 MiB of a file. drained looks at the connections of the port in /proc/net/tcp.",
			"With neither port nor path it waits for the whole timeout. In check mode the task is skipped.",
		},
		Examples: []string{
			"- name: Wait for the API server\n  wait_for:\n    port: 6443\n    timeout: 120",
			"- name: Wait until the lock is gone\n  wait_for:\n    path: /var/lock/app.lock\n    state: absent",
			"- name: Wait for a line of a log\n  wait_for:\n    path: /var/log/app.log\n    search_regex: 'ready in (?P<ms>\\d+) ms'",
		},
		Returns: []module.Return{
			{Key: "elapsed", Type: "int", Doc: "seconds it took"},
			{Key: "state", Type: "str", Doc: "what was waited for"},
			{Key: "port", Type: "int", Doc: "the port"},
			{Key: "path", Type: "str", Doc: "the path"},
			{Key: "search_regex", Type: "str", Doc: "the expression"},
			{Key: "match_groups", Type: "list", Doc: "groups of the match"},
			{Key: "match_groupdict", Type: "dict", Doc: "named groups of the match"},
		},
		New:          func() module.Runner { return &waitFor{} },
		Check:        module.Skips,
		CheckSkipMsg: "remote module (wait_for) does not support check mode",
	}
}
