package cli

import (
	"kubekey/pkg/config"
	"kubekey/pkg/vars"
)

// versions is the variable catalog: what goes with the config's Kubernetes.
func (a *app) versions(s *session, c *config.Config) []*vars.Layer {
	return nil
}
