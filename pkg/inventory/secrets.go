package inventory

import (
	"kubekey/pkg/redact"
	"kubekey/pkg/value"
)

// secretSink receives the secrets among variables, so that they are never shown.
type secretSink struct{ set *redact.Set }

func (s secretSink) tell(v *VarSet) {
	if s.set == nil {
		return
	}
	for k, val := range v.Values.All() {
		s.set.AddNamed(value.Named(value.Str(k), val, redact.Within))
	}
}
