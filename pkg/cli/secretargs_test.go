package cli

import (
	"testing"

	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
)

// noSecrets are arguments that have names of secrets but do not contain secrets.
func noSecrets() map[string]string {
	return map[string]string{}
}

// A module argument with the name of a secret has a secret type, unless it is listed with the reason why not.
func TestSecretArgumentsAreSecrets(t *testing.T) {
	r, err := Modules()
	if err != nil {
		t.Fatal(err)
	}
	unused := noSecrets()
	for _, s := range r.Specs() {
		if s.New == nil {
			continue
		}
		args, err := schema.Describe(s.New())
		if err != nil {
			t.Fatal(err)
		}
		checkSecretArgs(t, s, "", args, unused)
	}
	for name := range unused {
		t.Errorf("%s is listed, and is no such argument", name)
	}
}

func checkSecretArgs(t *testing.T, s *module.Spec, path string, args []schema.Arg, unused map[string]string) {
	t.Helper()
	for _, a := range args {
		name := s.Name + "." + path + a.Name
		secret := redact.IsSecretName(a.Name)
		for _, alias := range a.Aliases {
			secret = secret || redact.IsSecretName(alias)
		}
		_, listed := noSecrets()[name]
		switch {
		case listed:
			delete(unused, name)
		case secret && a.Type != "secret" && a.Type != "bool" && len(a.Choices) == 0:
			t.Errorf("%s is of type %s: make it a redact.Secret, or list it here with the reason", name, a.Type)
		}
		checkSecretArgs(t, s, path+a.Name+".", a.Options, unused)
	}
}
