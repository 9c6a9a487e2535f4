package net

import (
	"context"
	_ "embed"
	"encoding/hex"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

//go:embed wait_for.sh
var waitScript string

type waitFor struct {
	Host           string        `kk:"host" default:"127.0.0.1" doc:"host name or address to connect to, as seen from the host"`
	Port           int           `kk:"port" doc:"TCP port to wait for"`
	Path           string        `kk:"path" doc:"file or folder on the host to wait for"`
	State          string        `kk:"state" default:"started" choices:"absent,drained,present,started,stopped" doc:"started, present: the port is open or the file exists; stopped, absent: it is not; drained: the port has no connections"`
	Search         string        `kk:"search_regex" doc:"regular expression that must match the content of the file, or the data that the port sends"`
	Timeout        time.Duration `kk:"timeout" default:"300" doc:"how long to wait"`
	Delay          time.Duration `kk:"delay" default:"0" doc:"how long to wait before the first check"`
	Sleep          time.Duration `kk:"sleep" default:"1" doc:"how long to wait between checks"`
	ConnectTimeout time.Duration `kk:"connect_timeout" default:"5" doc:"timeout of a single connection"`
	Msg            string        `kk:"msg" doc:"message to fail with after the timeout"`
	Exclude        []string      `kk:"exclude_hosts" doc:"addresses whose connections are ignored for drained"`
	Active         []string      `kk:"active_connection_states" default:"ESTABLISHED,FIN_WAIT1,FIN_WAIT2,SYN_RECV,SYN_SENT,TIME_WAIT" choices:"ESTABLISHED,FIN_WAIT1,FIN_WAIT2,SYN_RECV,SYN_SENT,TIME_WAIT" doc:"connection states that count as active for drained"`
}

// Rules implements schema.Ruled.
func (*waitFor) Rules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("port", "path").Says("port and path parameter can not both be passed to wait_for"),
		schema.Between("port", 0, math.MaxUint16),
		schema.Refuses("path").If("state", "stopped", "drained").
			Says("state={state} should only be used for checking a port in the wait_for module"),
		schema.Needs("port").If("state", "drained").Says("state=drained needs a port"),
		schema.Refuses("exclude_hosts").Unless("state", "drained").Says("exclude_hosts should only be with state=drained"),
		schema.AtLeastOne("port", "path").With("search_regex").Says("search_regex needs a port or a path"),
		schema.Refuses("search_regex").Unless("state", "started", "present").
			Says("search_regex is for state=started and state=present"),
		schema.Looks("IP addresses", isIP, "exclude_hosts"),
	}
}

// Run implements module.Runner.
func (m *waitFor) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	start := c.Now()
	data := value.NewDict("state", m.State, "port", nil, "path", nil, "search_regex", nil, "match_groups", []any{},
		"match_groupdict", value.NewDict())
	m.describe(data)
	if err := module.Sleep(ctx, m.Delay); err != nil {
		return module.Result{}, err
	}
	msg, err := m.wait(ctx, c, data, start)
	if err != nil {
		return module.Result{}, err
	}
	elapsed := int(c.Now().Sub(start).Seconds())
	if msg != "" {
		return module.Result{Failed: true, Msg: msg, Data: value.NewDict("elapsed", elapsed)}, nil
	}
	data.Set("elapsed", elapsed)
	return module.Result{Data: data}, nil
}

func (m *waitFor) describe(data *value.Dict) {
	if m.Port > 0 {
		data.Set("port", m.Port)
	}
	if m.Path != "" {
		data.Set("path", m.Path)
	}
	if m.Search != "" {
		data.Set("search_regex", m.Search)
	}
}

func (m *waitFor) wantsPresence() bool { return m.State == "started" || m.State == "present" }

// wait returns the reason of a failure, "" for success.
func (m *waitFor) wait(ctx context.Context, c *module.Call, data *value.Dict, start time.Time) (string, error) {
	if m.Search != "" {
		return m.search(ctx, c, data, start)
	}
	line, err := m.line()
	if err != nil {
		return "", err
	}
	out, err := connector.Collect(ctx, c.Conn, connector.Command{Line: line, Probe: true}, connector.MaxAnswer)
	if err != nil {
		return "", err
	}
	switch answer := strings.TrimSpace(string(out.Stdout)); {
	case answer == "met", answer == "late" && m.Port == 0 && m.Path == "":
		return "", nil
	case answer == "late":
		return m.late(), nil
	case answer != "":
		return answer, nil
	}
	return "", fmt.Errorf("the wait on the host exited with status %d: %s", out.Code, strings.TrimSpace(out.Stderr))
}

func (m *waitFor) line() (string, error) {
	kind := "none"
	switch {
	case m.State == "drained":
		kind = "drained"
	case m.Port > 0:
		kind = "port"
	case m.Path != "":
		kind = "path"
	}
	desired := "absent"
	if m.wantsPresence() || m.State == "drained" {
		desired = "present"
	}
	excluded, err := kernelAddresses(m.Exclude)
	if err != nil {
		return "", err
	}
	return shell.Script(waitScript, kind, desired, m.Host, strconv.Itoa(m.Port), m.Path,
		seconds(m.Timeout), seconds(m.Sleep), seconds(max(m.ConnectTimeout, time.Second)),
		fmt.Sprintf("%04X", m.Port), kernelStates(m.Active), excluded), nil
}

// seconds rounds up: the host's sleep and timeout may know whole seconds only.
func seconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(max(d, 0).Seconds()))) }

// kernelStates are the codes of states in /proc/net/tcp.
func kernelStates(names []string) string {
	table := [...]string{"ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT"}
	var codes []string
	for _, n := range names {
		if i := slices.Index(table[:], n); i >= 0 {
			codes = append(codes, fmt.Sprintf("%02X", i+1))
		}
	}
	return strings.Join(codes, " ")
}

// kernelAddresses writes addresses as /proc/net/tcp does: words of four bytes,
// the least significant first; IPv4 addresses also in the form of tcp6.
func kernelAddresses(hosts []string) (string, error) {
	var out []string
	for _, h := range hosts {
		a, err := netip.ParseAddr(h)
		if err != nil {
			return "", fmt.Errorf("exclude_hosts: %q is not an IP address", h)
		}
		if a.Is4() {
			out = append(out, kernelWords(a.AsSlice()))
		}
		long := a.As16()
		out = append(out, kernelWords(long[:]))
	}
	return strings.Join(out, " "), nil
}

func kernelWords(b []byte) string {
	var s strings.Builder
	for i := 0; i < len(b); i += 4 {
		word := slices.Clone(b[i : i+4])
		slices.Reverse(word)
		s.WriteString(strings.ToUpper(hex.EncodeToString(word)))
	}
	return s.String()
}

// late is message to fail with after the timeout.
func (m *waitFor) late() string {
	place := fmt.Sprintf("%s:%d", m.Host, m.Port)
	switch {
	case m.Msg != "":
		return m.Msg
	case m.Search != "" && m.Path != "":
		return fmt.Sprintf("Timeout when waiting for search string %s in %s", m.Search, m.Path)
	case m.Search != "":
		return fmt.Sprintf("Timeout when waiting for search string %s in %s", m.Search, place)
	case m.State == "drained":
		return "Timeout when waiting for " + place + " to drain"
	case m.Path != "" && m.wantsPresence():
		return "Timeout when waiting for file " + m.Path
	case m.Path != "":
		return "Timeout when waiting for " + m.Path + " to be absent."
	case m.wantsPresence():
		return "Timeout when waiting for " + place
	}
	return "Timeout when waiting for " + place + " to stop."
}

func isIP(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}
