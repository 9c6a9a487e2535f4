// Command flannel-cni stands for flannel's CNI plugin: it reads the subnet that
// flannel's daemon got for this node, and lets the plugin bridge do the rest.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
)

// config is what the network's configuration says to this plugin.
type config struct {
	types.NetConf
	SubnetFile string         `json:"subnetFile"`
	DataDir    string         `json:"dataDir"`
	Delegate   map[string]any `json:"delegate"`
}

func main() {
	skel.PluginMainFuncs(skel.CNIFuncs{Add: add, Check: check, Del: del}, version.All, "flannel")
}

func add(args *skel.CmdArgs) error {
	c, err := read(args.StdinData)
	if err != nil {
		return err
	}
	bridge, err := c.bridge()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(c.kept(args), bridge, 0o600); err != nil {
		return err
	}
	result, err := invoke.DelegateAdd(context.Background(), "bridge", bridge, nil)
	if err != nil {
		return err
	}
	return result.Print()
}

func check(args *skel.CmdArgs) error {
	c, err := read(args.StdinData)
	if err != nil {
		return err
	}
	bridge, err := os.ReadFile(c.kept(args))
	if err != nil {
		return err
	}
	return invoke.DelegateCheck(context.Background(), "bridge", bridge, nil)
}

// del uses what add wrote down: by now flannel may have another subnet, or none.
func del(args *skel.CmdArgs) error {
	c, err := read(args.StdinData)
	if err != nil {
		return err
	}
	bridge, err := os.ReadFile(c.kept(args))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := invoke.DelegateDel(context.Background(), "bridge", bridge, nil); err != nil {
		return err
	}
	return os.Remove(c.kept(args))
}

func read(data []byte) (*config, error) {
	c := &config{SubnetFile: "/run/flannel/subnet.env", DataDir: "/var/lib/cni/flannel"}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("read the network's configuration: %w", err)
	}
	return c, nil
}

func (c *config) kept(args *skel.CmdArgs) string { return filepath.Join(c.DataDir, args.ContainerID) }

// bridge is the configuration of the plugin bridge.
func (c *config) bridge() ([]byte, error) {
	env, err := c.subnet()
	if err != nil {
		return nil, err
	}
	mtu, err := strconv.Atoi(env["FLANNEL_MTU"])
	if err != nil {
		return nil, fmt.Errorf("%s: FLANNEL_MTU: %w", c.SubnetFile, err)
	}
	out := map[string]any{"isGateway": true, "isDefaultGateway": true}
	for k, v := range c.Delegate {
		out[k] = v
	}
	out["cniVersion"], out["name"], out["type"], out["mtu"] = c.CNIVersion, c.Name, "bridge", mtu
	out["ipMasq"] = env["FLANNEL_IPMASQ"] == "false" // flannel's daemon masquerades itself, or leaves it to us
	var ranges []any
	var routes []any
	for _, family := range []string{"", "IPV6_"} {
		if subnet := env["FLANNEL_"+family+"SUBNET"]; subnet != "" {
			ranges = append(ranges, []any{map[string]any{"subnet": network(subnet)}})
			for network := range strings.SplitSeq(env["FLANNEL_"+family+"NETWORK"], ",") {
				routes = append(routes, map[string]any{"dst": network})
			}
		}
	}
	out["ipam"] = map[string]any{"type": "host-local", "ranges": ranges, "routes": routes}
	return json.Marshal(out)
}

// network is the subnet of an address with a prefix length. host-local masks
// an address by itself but refuses one whose host bits are set.
func network(address string) string {
	prefix, err := netip.ParsePrefix(address)
	if err != nil {
		return address
	}
	return prefix.Masked().String()
}

func (c *config) subnet() (map[string]string, error) {
	data, err := os.ReadFile(c.SubnetFile)
	if err != nil {
		return nil, fmt.Errorf("flannel's daemon has not got a subnet yet: %w", err)
	}
	env := map[string]string{}
	for line := range strings.Lines(string(data)) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		env[k] = v
	}
	return env, nil
}
