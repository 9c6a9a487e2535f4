package inventory

import (
	"kubekey/pkg/redact"
	"kubekey/pkg/value"
)

// secretSink is told of the secrets among variables, so that nothing shows them.
type secretSink struct{ set *redact.Set }

func (s secretSink) tell(v *VarSet) {
	if s.set == nil {
		return
	}
	for k, val := range v.Values.All() {
		s.look(value.Str(k), val)
	}
}

func (s secretSink) look(key string, v any) {
	switch v := v.(type) {
	case string:
		if redact.IsSecret(key, v) {
			s.set.Add(v)
		}
	case *value.Dict:
		for k, e := range v.All() {
			s.look(value.Str(k), e)
		}
	case []any:
		for _, e := range v {
			s.look(key, e)
		}
	}
}
