// Package net holds the modules that download files and repositories, send requests,
// wait for ports, and manage packet filter rules and firewalls.
package net

import "kubekey/pkg/module"

// Modules describes wait_for, get_url, http_get_file, download, uri, git, subversion, iptables, firewalld
// and ufw.
func Modules() []module.Spec {
	return []module.Spec{waitForSpec(), getURLSpec(), httpGetFileSpec(), downloadSpec(), uriSpec(), gitSpec(),
		subversionSpec(), iptablesSpec(), firewalldSpec(), ufwSpec()}
}

func waitForSpec() module.Spec {
	return module.Spec{
		Name:    "wait_for",
		Summary: "Waits until a port is open or closed, or a file exists or not, as seen from the host.",
		Notes: []string{
			"The host itself waits, in one command. Connections are made with bash, nc, busybox or curl, whichever is " +
				"available.",
			"search_regex reads at most the last 16 MiB of a file. drained reads the connections of the port from " +
				"/proc/net/tcp.",
			"Without port and path it waits for the whole timeout. In check mode the task is skipped.",
		},
		Examples: []string{
			"- name: Wait for the API server\n  wait_for:\n    port: 6443\n    timeout: 120",
			"- name: Wait until the lock is gone\n  wait_for:\n    path: /var/lock/app.lock\n    state: absent",
			"- name: Wait for a line in a log\n  wait_for:\n    path: /var/log/app.log\n" +
				"    search_regex: 'ready in (?P<ms>\\d+) ms'",
		},
		Returns: []module.Return{
			{Key: "elapsed", Type: "int", Doc: "seconds it took"},
			{Key: "state", Type: "str", Doc: "the awaited state"},
			{Key: "port", Type: "int", Doc: "the argument"},
			{Key: "path", Type: "str", Doc: "the argument"},
			{Key: "search_regex", Type: "str", Doc: "the argument"},
			{Key: "match_groups", Type: "list", Doc: "groups of the match"},
			{Key: "match_groupdict", Type: "dict", Doc: "named groups of the match"},
		},
		New:          func() module.Runner { return &waitFor{} },
		Check:        module.Skips,
		CheckSkipMsg: "remote module (wait_for) does not support check mode",
	}
}
