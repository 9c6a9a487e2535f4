package module_test

import (
	"testing"

	"kubekey/pkg/module"
)

func TestNamesWithCollections(t *testing.T) {
	r, err := module.NewRegistry([]module.Spec{
		{Name: "copy"},
		{Name: "sysctl", Collection: "ansible.posix"},
		{Name: "dnf", Aliases: []string{"yum"}},
		{Name: "image", Collection: "kk"},
		{Name: "k8s", Collection: "kubernetes.core", Former: "community.kubernetes"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"copy": "copy", "ansible.builtin.copy": "copy", "ansible.legacy.copy": "copy", "kk.copy": "copy",
		"community.general.copy": "", "ansible.posix.copy": "",
		"sysctl": "sysctl", "ansible.posix.sysctl": "sysctl", "ansible.builtin.sysctl": "sysctl", "kk.sysctl": "sysctl",
		"community.general.sysctl": "",
		"ansible.builtin.yum":      "dnf", "community.general.yum": "",
		"image": "image", "kk.image": "image", "ansible.builtin.image": "", "ansible.legacy.image": "",
		"kubernetes.core.k8s": "k8s", "community.kubernetes.k8s": "k8s", "community.kubernetes.copy": "",
		"other.collection.copy": "", "ansible.builtin.": "",
	} {
		got := ""
		if s := r.Find(name); s != nil {
			got = s.Name
			if !s.Is(name) {
				t.Errorf("%s is found as %s, which does not answer to it", name, got)
			}
		}
		if got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]bool{
		"ansible.builtin": true, "ansible.legacy": true, "ansible.posix": true, "kubernetes.core": true,
		"community.kubernetes": true,
		"kk":                   false, "community.general": false, "": false,
	} {
		if r.HasCollection(name) != want {
			t.Errorf("the collection %q is there: %v", name, !want)
		}
	}
	for _, s := range r.Specs() {
		if full := s.FullName(s.Name); r.Find(full) != s {
			t.Errorf("%s is not found as %s", s.Name, full)
		}
	}
}
