package inventory

import (
	"strings"

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
		if isSecretName(key) && !strings.Contains(v, "{{") {
			s.set.Add(v)
		}
	case *value.Dict:
		if key != "connector" {
			return
		}
		for k, e := range v.All() {
			s.look("ansible_"+value.Str(k), e)
		}
	}
}

// isSecretName tells the connection variables that hold a secret itself, not
// the name of a file with it.
func isSecretName(key string) bool {
	if !strings.HasPrefix(key, "ansible_") {
		return false
	}
	return strings.HasSuffix(key, "_pass") || strings.HasSuffix(key, "password") || strings.HasSuffix(key, "passphrase") ||
		strings.HasSuffix(key, "private_key_content") || key == "ansible_ssh_private_key" || strings.HasSuffix(key, "token")
}
