package facts

import (
	"strings"

	"kubekey/pkg/value"
)

// python describes the host's interpreter, for playbooks that choose packages by it: kk itself
// needs none. Without one its executable is "".
func python(f *value.Dict, s sections) {
	version := strings.TrimPrefix(s.line("python", 1), "Python ")
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 3 {
		f.Set("python", value.NewDict("executable", "", "has_sslcontext", false, "type", nil))
		return
	}
	major, minor, micro := number(parts[0]), number(parts[1]), number(parts[2])
	f.Set("python_version", version)
	f.Set("python", value.NewDict(
		"executable", s.line("python", 0), "has_sslcontext", true, "type", "cpython",
		"version", value.NewDict("major", major, "minor", minor, "micro", micro, "releaselevel", "final", "serial", 0),
		"version_info", []any{major, minor, micro, "final", 0},
	))
}

// capabilities are those of the user, as capsh prints them.
func capabilities(f *value.Dict, s sections) {
	enforced, list := "N/A", []any{}
	for _, l := range s.lines("caps") {
		caps, ok := strings.CutPrefix(l, "Current:")
		if !ok {
			continue
		}
		if caps = strings.TrimSpace(caps); caps == "=ep" {
			enforced = "False"
			break
		}
		enforced = "True"
		_, names, _ := strings.Cut(caps, "=")
		for _, c := range strings.Split(names, ",") {
			list = append(list, strings.TrimSpace(c))
		}
	}
	f.Set("system_capabilities_enforced", enforced)
	f.Set("system_capabilities", list)
}

// storage sets the host's names in storage networks: iSCSI, NVMe, Fibre Channel.
func storage(f *value.Dict, s sections) {
	pairs := s.pairs("storage")
	f.Set("iscsi_iqn", pairs["InitiatorName"])
	f.Set("hostnqn", pairs["hostnqn"])
	wwns := []any{}
	for _, l := range s.lines("storage") {
		if wwn, ok := strings.CutPrefix(l, "wwn=0x"); ok {
			wwns = append(wwns, wwn)
		}
	}
	f.Set("fibre_channel_wwn", wwns)
}

// volumes describes the groups, logical and physical volumes of LVM, which are visible only to
// root; sizes are in GiB.
func volumes(s sections) any {
	if _, asked := s["vgs"]; !asked {
		return "N/A"
	}
	groups, logical, physical := value.NewDict(), value.NewDict(), value.NewDict()
	for _, w := range fieldsOf(s, "vgs", 5) {
		groups.Set(w[0], value.NewDict("num_pvs", w[1], "num_lvs", w[2], "size_g", w[3], "free_g", w[4]))
	}
	for _, w := range fieldsOf(s, "lvs", 3) {
		logical.Set(w[0], value.NewDict("vg", w[1], "size_g", w[2]))
	}
	for _, w := range fieldsOf(s, "pvs", 4) {
		physical.Set(w[0], value.NewDict("vg", w[1], "size_g", w[2], "free_g", w[3]))
	}
	return value.NewDict("vgs", groups, "lvs", logical, "pvs", physical)
}

// fieldsOf returns the lines of a section that have n fields separated by commas.
func fieldsOf(s sections, name string, n int) [][]string {
	var out [][]string
	for _, l := range s.lines(name) {
		if w := strings.Split(l, ","); len(w) == n {
			out = append(out, w)
		}
	}
	return out
}

// formFactor names a chassis type; the numbers are from the SMBIOS specification (DMTF
// DSP0134), section "System Enclosure or Chassis Types".
func formFactor(chassis string) string {
	names := [...]string{"", "Other", "Unknown", "Desktop", "Low Profile Desktop", "Pizza Box", "Mini Tower", "Tower",
		"Portable",
		"Laptop", "Notebook", "Hand Held", "Docking Station", "All In One", "Sub Notebook", "Space-saving", "Lunch Box",
		"Main Server Chassis", "Expansion Chassis", "Sub Chassis", "Bus Expansion Chassis", "Peripheral Chassis",
		"RAID Chassis",
		"Rack Mount Chassis", "Sealed-case PC", "Multi-system", "CompactPCI", "AdvancedTCA", "Blade", "Blade Enclosure",
		"Tablet", "Convertible", "Detachable", "IoT Gateway", "Embedded PC", "Mini PC", "Stick PC"}
	if n := number(chassis); n > 0 && n < len(names) {
		return names[n]
	}
	return "NA"
}
