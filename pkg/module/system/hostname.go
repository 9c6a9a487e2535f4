package system

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed hostname.sh
var hostnameScript string

// Hostname is the module hostname.
type Hostname struct {
	Name string `kk:"name,required" doc:"host name to set"`
	Use  string `kk:"use" default:"auto" choices:"auto,systemd,generic,debian,redhat,alpine,openrc" doc:"how to set it; auto uses hostnamectl if systemd is running. All but systemd write /etc/hostname and set the name in the kernel"`
}

func hostnameSpec() module.Spec {
	return module.Spec{
		Name:     "hostname",
		Summary:  "Sets the host's name, now and for the next boot.",
		Notes:    []string{"/etc/hosts is not changed."},
		Examples: []string{"- name: Set the name from the inventory\n  hostname:\n    name: \"{{ inventory_hostname }}\""},
		Returns: []module.Return{
			{Key: "name", Type: "str", Doc: "the host name"},
			{Key: "ansible_facts", Type: "dict", Doc: "hostname, nodename, fqdn and domain after the task"},
		},
		New: func() module.Runner { return new(Hostname) },
	}
}

var hostnamePattern = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$`)

func isHostName(name string) error {
	if len(name) > 64 || !hostnamePattern.MatchString(name) {
		return fmt.Errorf("%q is not a host name: write 1 to 64 letters, digits, dots and dashes", name)
	}
	return nil
}

// Rules implements schema.Ruled.
func (*Hostname) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("name"),
		schema.Parses("a host name", isHostName, "name"),
	}
}

// Run implements module.Runner.
func (m *Hostname) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	r, a, err := c.Do(ctx, hostscript.New(hostnameScript, "hostname_main").Args(m), "name", m.Name)
	if err != nil {
		return r, err
	}
	r.Facts, r.FactKind = hostnameFacts(m.Name, strings.TrimSpace(a.Get("fqdn"))), module.Gathered
	names := func(now, kept string) string { return fmt.Sprintf("hostname = %s\n/etc/hostname = %s\n", now, kept) }
	c.Show(&r, "hostname", names(a.Get("was"), a.Get("kept")), names(m.Name, m.Name))
	return r, nil
}

// hostnameFacts are the facts that a new name changes. fqdn is the name from the host's
// resolver, "" if it has none.
func hostnameFacts(name, fqdn string) *value.Dict {
	short, _, _ := strings.Cut(name, ".")
	if fqdn == "" || !strings.HasPrefix(fqdn, short) {
		fqdn = name
	}
	_, domain, _ := strings.Cut(fqdn, ".")
	return value.NewDict("ansible_hostname", short, "ansible_nodename", name, "ansible_fqdn", fqdn, "ansible_domain",
		domain)
}
