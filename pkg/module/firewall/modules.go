// Package firewall holds the modules that keep the rules of a host's packet
// filter, with the tool of the host that owns them.
package firewall

import "kubekey/pkg/module"

// Modules describes iptables, ufw and firewalld.
func Modules() []module.Spec {
	return []module.Spec{iptablesSpec(), ufwSpec(), firewalldSpec()}
}
