package facts

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"kubekey/pkg/value"
)

func processor(f *value.Dict, s sections) {
	var list []any
	sockets, cpus, cores, siblings := map[string]bool{}, 0, 0, 0
	for _, l := range s.lines("cpuinfo") {
		key, v, _ := strings.Cut(l, ":")
		key, v = strings.TrimSpace(key), strings.TrimSpace(v)
		switch key {
		case "processor":
			cpus++
			list = append(list, v)
		case "vendor_id", "model name":
			list = append(list, v)
		case "physical id":
			sockets[v] = true
		case "cpu cores":
			cores = number(v)
		case "siblings":
			siblings = number(v)
		}
	}
	if cpus == 0 {
		return
	}
	count, perSocket, threads := max(1, len(sockets)), max(1, cores), 1
	if len(sockets) == 0 {
		count = cpus // virtual and ARM machines do not report sockets
	}
	if cores > 0 && siblings > cores {
		threads = siblings / cores
	}
	f.Set("processor", list)
	f.Set("processor_count", count)
	f.Set("processor_cores", perSocket)
	f.Set("processor_threads_per_core", threads)
	f.Set("processor_vcpus", cpus)
	f.Set("processor_nproc", cpus)
}

func memory(f *value.Dict, s sections) {
	mb := map[string]int{}
	for _, l := range s.lines("meminfo") {
		k, v, _ := strings.Cut(l, ":")
		mb[k] = number(v) / 1024
	}
	if len(mb) > 0 {
		total, free, swap, swapFree := mb["MemTotal"], mb["MemFree"], mb["SwapTotal"], mb["SwapFree"]
		noCache := free + mb["Buffers"] + mb["Cached"]
		f.Set("memtotal_mb", total)
		f.Set("memfree_mb", free)
		f.Set("swaptotal_mb", swap)
		f.Set("swapfree_mb", swapFree)
		f.Set("memory_mb", value.NewDict(
			"real", value.NewDict("total", total, "used", total-free, "free", free),
			"nocache", value.NewDict("free", noCache, "used", total-noCache),
			"swap", value.NewDict("total", swap, "free", swapFree, "used", swap-swapFree, "cached", mb["SwapCached"]),
		))
	}
	if load := strings.Fields(s.line("loadavg", 0)); len(load) >= 3 {
		d := value.NewDict()
		for i, name := range []string{"1m", "5m", "15m"} {
			n, err := strconv.ParseFloat(load[i], 64)
			if err == nil {
				d.Set(name, n)
			}
		}
		f.Set("loadavg", d)
	}
	if up := s.line("uptime", 0); up != "" {
		f.Set("uptime_seconds", number(up))
	}
}

// mounts lists the mounts of devices and network file systems.
func mounts(f *value.Dict, s sections) {
	sizes := map[string][]string{}
	for _, l := range s.lines("df") {
		// A blank in the mount point is a blank in df's line, too.
		if w := strings.Fields(l); len(w) >= 6 && number(w[1]) > 0 {
			sizes[strings.Join(w[5:], " ")] = w
		}
	}
	uuids := deviceLinks(s, "uuids")
	systems := fileSystems(s)
	list := []any{}
	for _, l := range s.lines("mounts") {
		w := strings.Fields(l)
		if len(w) < 4 || !(strings.HasPrefix(w[0], "/") || strings.Contains(w[0], ":/")) {
			continue
		}
		device, mount := unescape(w[0]), unescape(w[1])
		d := value.NewDict("mount", mount, "device", device, "fstype", w[2], "options", w[3])
		uuid := "N/A"
		if links := uuids[strings.TrimPrefix(device, "/dev/")]; len(links) > 0 {
			uuid = links[len(links)-1]
		}
		d.Set("uuid", uuid)
		if sys := systems[mount]; sys != nil {
			d.Merge(sys)
		} else if size := sizes[mount]; size != nil {
			const block = 1024
			d.Set("size_total", number(size[1])*block)
			d.Set("size_available", number(size[3])*block)
			d.Set("block_size", block)
			d.Set("block_total", number(size[1]))
			d.Set("block_available", number(size[3]))
			d.Set("block_used", number(size[1])-number(size[3]))
		}
		list = append(list, d)
	}
	f.Set("mounts", list)
}

// unescape decodes the octal escapes of /proc/mounts.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`, `\043`, "#").Replace(s)
}

// fileSystems returns the sizes of mounted file systems, by mount point.
func fileSystems(s sections) map[string]*value.Dict {
	out := map[string]*value.Dict{}
	for _, l := range s.lines("statfs") {
		w := strings.SplitN(l, " ", 6)
		if len(w) < 6 || number(w[1]) == 0 {
			continue
		}
		block, total, available, inodes, free := number(w[0]), number(w[1]), number(w[2]), number(w[3]), number(w[4])
		out[w[5]] = value.NewDict(
			"size_total", block*total, "size_available", block*available,
			"block_size", block, "block_total", total, "block_available", available, "block_used", total-available,
			"inode_total", inodes, "inode_available", free, "inode_used", inodes-free,
		)
	}
	return out
}

// deviceLinks returns the names that a section has for block devices.
func deviceLinks(s sections, section string) map[string][]string {
	links := map[string][]string{}
	for _, l := range s.lines(section) {
		if target, link, ok := strings.Cut(l, " "); ok {
			name := path.Base(target)
			links[name] = append(links[name], path.Base(link))
		}
	}
	for _, names := range links {
		slices.Sort(names)
	}
	return links
}

func devices(f *value.Dict, s sections) {
	all := value.NewDict()
	links := value.NewDict()
	of := map[string]map[string][]string{}
	for _, kind := range []string{"ids", "labels", "masters", "uuids"} {
		of[kind] = deviceLinks(s, kind)
		named := value.NewDict()
		for _, device := range slices.Sorted(maps.Keys(of[kind])) {
			named.Set(device, strs(of[kind][device]))
		}
		links.Set(kind, named)
	}
	f.Set("device_links", links)
	linksOf := func(device string) *value.Dict {
		return value.NewDict("ids", strs(of["ids"][device]), "labels", strs(of["labels"][device]),
			"masters", strs(of["masters"][device]), "uuids", strs(of["uuids"][device]))
	}
	var disk, part *value.Dict // the current ones; nil before the first
	for _, l := range s.lines("block") {
		k, v, _ := strings.Cut(l, "=")
		switch {
		case k == "disk":
			part = nil
			disk = value.NewDict("model", nil, "vendor", nil, "removable", "0", "rotational", "0",
				"sectors", "0", "sectorsize", "512",
				"size", "0.00 Bytes", "holders", []any{}, "links", linksOf(v), "partitions", value.NewDict())
			all.Set(v, disk)
		case disk == nil:
		case k == "part":
			part = value.NewDict("uuid", nil, "links", linksOf(v))
			if u := of["uuids"][v]; len(u) > 0 {
				part.Set("uuid", u[len(u)-1])
			}
			partitions, _ := disk.Get("partitions")
			partitions.(*value.Dict).Set(v, part)
		default:
			diskLine(disk, k, v)
			if part != nil {
				partLine(part, k, v)
			}
		}
	}
	f.Set("devices", all)
}

const sectorSize = 512 // the kernel's unit, independent of the disk's

// diskLine stores an attribute of a disk.
func diskLine(disk *value.Dict, k, v string) {
	switch k {
	case "sectors":
		disk.Set("sectors", v)
		disk.Set("size", humanSize(number(v)*sectorSize))
	case "holder":
		old, _ := disk.Get("holders")
		disk.Set("holders", append(old.([]any), v))
	case "scheduler": // the one in use is in brackets
		_, rest, _ := strings.Cut(v, "[")
		disk.Set("scheduler_mode", before(rest, "]"))
	case "discard":
		disk.Set("support_discard", v)
	case "model", "vendor", "removable", "rotational", "sectorsize":
		disk.Set(k, v)
	}
}

// partLine stores an attribute of a partition.
func partLine(part *value.Dict, k, v string) {
	switch k {
	case "psectors":
		part.Set("sectors", v)
		part.Set("size", humanSize(number(v)*sectorSize))
	case "pstart":
		part.Set("start", v)
	}
}

// humanSize formats a size in units of 1024: 50.00 GB.
func humanSize(bytes int) string {
	size, units := float64(bytes), [...]string{"Bytes", "KB", "MB", "GB", "TB", "PB"}
	i := 0
	for size >= 1024 && i < len(units)-1 {
		size /= 1024
		i++
	}
	return fmt.Sprintf("%s %s", strconv.FormatFloat(size, 'f', 2, 64), units[i])
}

func firmware(f *value.Dict, s sections) {
	dmi := s.pairs("dmi")
	names := [...][2]string{
		{"sys_vendor", "system_vendor"}, {"product_name", "product_name"}, {"product_version", "product_version"},
		{"product_serial", "product_serial"}, {"product_uuid", "product_uuid"}, {"bios_date", "bios_date"},
		{"bios_vendor", "bios_vendor"}, {"bios_version", "bios_version"}, {"board_name", "board_name"},
		{"board_vendor", "board_vendor"}, {"board_version", "board_version"}, {"board_serial", "board_serial"},
		{"board_asset_tag", "board_asset_tag"},
		{"chassis_vendor", "chassis_vendor"}, {"chassis_version", "chassis_version"},
		{"chassis_serial", "chassis_serial"}, {"chassis_asset_tag", "chassis_asset_tag"},
	}
	f.Set("form_factor", formFactor(dmi["chassis_type"]))
	for _, n := range names {
		v := dmi[n[0]]
		if v == "" {
			v = "NA"
		}
		f.Set(n[1], v)
	}
}

// virtualization sets what the host runs in (guest) or provides (host).
func virtualization(f *value.Dict, s sections) {
	kind, role := virtualKind(s)
	f.Set("virtualization_type", kind)
	f.Set("virtualization_role", role)
	techs := func(is string) []any {
		if role != is {
			return []any{}
		}
		return []any{kind}
	}
	f.Set("virtualization_tech_guest", techs("guest"))
	f.Set("virtualization_tech_host", techs("host"))
}

func virtualKind(s sections) (kind, role string) {
	v := s.pairs("virt")
	cgroup := s["cgroup"]
	switch {
	case v["docker"] != "", strings.Contains(cgroup, "/docker"), strings.Contains(cgroup, "kubepods"):
		return "docker", "guest"
	case v["podman"] != "":
		return "podman", "guest"
	case v["openvz"] != "":
		return "openvz", "guest"
	case strings.Contains(cgroup, "/lxc"):
		return "lxc", "guest"
	}
	if c := s.pairs("init_environ")["container"]; c != "" {
		return c, "guest"
	}
	names := map[string]string{"vmware": "VMware", "oracle": "virtualbox", "microsoft": "VirtualPC", "amazon": "kvm",
		"qemu": "kvm"}
	if d := v["systemd"]; d != "" && d != "none" {
		if names[d] != "" {
			d = names[d]
		}
		return d, "guest"
	}
	product := v["sys_vendor"] + " " + v["product_name"]
	for _, row := range [...][2]string{
		{"VMware", "VMware"}, {"VirtualBox", "virtualbox"}, {"QEMU", "kvm"}, {"KVM", "kvm"}, {"OpenStack", "openstack"},
		{"Xen", "xen"}, {"HVM domU", "xen"}, {"Amazon EC2", "kvm"}, {"Google", "kvm"}, {"Microsoft Corporation Virtual",
			"VirtualPC"},
	} {
		if strings.Contains(product, row[0]) {
			return row[1], "guest"
		}
	}
	switch {
	case v["hypervisor"] != "":
		return "kvm", "guest"
	case v["kvm_host"] != "":
		return "kvm", "host"
	}
	return "NA", "NA"
}
