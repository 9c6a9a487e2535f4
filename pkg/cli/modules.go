package cli

import (
	"kubekey/pkg/collections/ansibleutils"
	"kubekey/pkg/collections/crypto"
	"kubekey/pkg/collections/general"
	"kubekey/pkg/collections/posix"
	"kubekey/pkg/collections/sql"
	"kubekey/pkg/expr"
	"kubekey/pkg/expr/library"
	"kubekey/pkg/module"
	"kubekey/pkg/module/account"
	"kubekey/pkg/module/exec"
	"kubekey/pkg/module/file"
	"kubekey/pkg/module/flow"
	"kubekey/pkg/module/image"
	"kubekey/pkg/module/kube"
	"kubekey/pkg/module/net"
	"kubekey/pkg/module/offline"
	"kubekey/pkg/module/packages"
	"kubekey/pkg/module/pki"
	"kubekey/pkg/module/service"
	"kubekey/pkg/module/system"
)

// Modules returns the registry of all modules: the modules that the builtin playbooks use, and those of Ansible
// collections. Only this list refers to the collections.
func Modules() (*module.Registry, error) {
	return module.NewRegistry(
		account.Modules(), exec.Modules(), file.Modules(), flow.Modules(), image.Modules(), kube.Modules(),
		net.Modules(), offline.Modules(), packages.Modules(), pki.Modules(), service.Modules(), system.Modules(),

		crypto.Modules(), general.Modules(), posix.Modules(), sql.Modules(),
	)
}

// Libraries returns everything that expressions can call: the standard library and the additions of the
// collections.
func Libraries() []expr.Library {
	return []expr.Library{library.Standard(), ansibleutils.Library(), general.Library()}
}
