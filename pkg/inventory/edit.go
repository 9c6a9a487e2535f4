package inventory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Addition is a host to add to an inventory file.
type Addition struct {
	Name    string // as in the inventory
	Address string // IP address or DNS name that it is reached at
	Group   string // that it becomes a member of
	Near    string // a group: Group is made next to it if the file has no Group
}

// Removal is what to remove from inventory files.
type Removal struct {
	Names []string // of hosts
	From  []string // groups that the hosts leave
	Keep  []string // groups whose members stay in the inventory, and in all groups but those of From
}

// Edit is the changed text of an inventory file.
type Edit struct {
	Path          string // absolute
	Name          string // as shown
	Before, After []byte // the whole file
}

var bom = []byte("\xef\xbb\xbf")

// editor changes the text of one format: one host at a time, so that every position is of the text at hand.
type editor interface {
	// define adds a host with its address, to the group or to where the members of the group have their variables.
	define(Addition) error
	// join adds the name of a host that the file defines to a group.
	join(Addition) error
	// remove removes the entries of a host from groups; nil is all groups.
	remove(name string, groups []string) error
	text() *source.File
}

// Add adds hosts to the file that the inventory was read from. Comments, order and layout stay: only lines of the
// new hosts are added. New hosts get the connection variables that all members of their group have in common, and
// their address wherever the others have theirs. A host that exists with the same address only joins the group.
// Nothing is written. It returns the edit, nil if nothing is to change, and the inventory as it is after it.
//
// It is an error, with the position, if a name or an address is not valid or is in use, and if the inventory is not one
// static file: a folder, an executable, several sources.
func (inv *Inventory) Add(ctx context.Context, hosts []Addition) (*Edit, *Inventory, source.Diagnostics) {
	if ds := inv.checkAdditions(hosts); ds.Err() != nil {
		return nil, nil, ds
	}
	fresh := slices.DeleteFunc(slices.Clone(hosts), func(a Addition) bool {
		return inv.Has(a.Name) && slices.Contains(inv.GroupsOf(a.Name), a.Group)
	})
	if len(fresh) == 0 {
		return nil, inv, nil
	}
	path, d := inv.onlyFile()
	if d != nil {
		return nil, nil, source.Diagnostics{d.WithHelp("%s", byHand(d.Help, fresh))}
	}
	e, before, d := inv.edit(path)
	if d != nil {
		return nil, nil, source.Diagnostics{d.WithHelp("%s", byHand(d.Help, fresh))}
	}
	for _, a := range fresh {
		add := e.define
		if inv.Has(a.Name) {
			add = e.join
		}
		if err := add(a); err != nil {
			return nil, nil, source.Diagnostics{unedited(err, e.text(), byHand("", fresh))}
		}
	}
	edit := &Edit{Path: path, Name: e.text().Name, Before: before, After: encode(before, e.text().Text)}
	after, ds := inv.with(ctx, edit)
	if ds.Err() == nil {
		ds.Add(inv.addedOnly(after, edit, fresh))
	}
	return edit, after, ds
}

// byHand says what to add where kk does not edit the inventory.
func byHand(help string, hosts []Addition) string {
	if help != "" {
		help += "; "
	}
	for i, a := range hosts {
		if i > 0 {
			help += "; "
		}
		help += fmt.Sprintf("add `%s: {ansible_host: %q}` to the hosts of the group %s", a.Name, a.Address, a.Group)
	}
	return help + ", and run the command with the names alone"
}

// unedited returns the diagnostic for an edit that is not possible.
func unedited(err error, f *source.File, help string) *source.Diagnostic {
	var d *source.Diagnostic
	if !errors.As(err, &d) {
		d = source.Errorf(source.Pos{File: f}, "%v", err)
	}
	if d.Help == "" {
		d = d.WithHelp("%s", help)
	}
	return d
}

// Remove removes hosts from the files that the inventory was read from, with the comments directly above their
// lines and behind them. A host that is in a group of r.Keep only leaves the groups of r.From. Nothing is written. It
// returns the edits, and the inventory as it is after them. Hosts that are not in the inventory are skipped. It is an
// error, with the position, where a host cannot be removed: a range, an anchor that others use, an executable.
func (inv *Inventory) Remove(ctx context.Context, r Removal) ([]*Edit, *Inventory, source.Diagnostics) {
	inv, ds := inv.with(ctx) // without what a run added, and with what the files have now
	if ds.Err() != nil {
		return nil, nil, ds
	}
	var edits []*Edit
	for _, path := range inv.files {
		e, before, d := inv.edit(path)
		if d != nil {
			return nil, nil, source.Diagnostics{d}
		}
		for _, name := range r.Names {
			if !inv.Has(name) {
				continue
			}
			if err := e.remove(name, inv.leaves(name, r)); err != nil {
				return nil, nil, source.Diagnostics{unedited(err, e.text(), "remove "+name+" from the file yourself")}
			}
		}
		after := encode(before, e.text().Text)
		if !bytes.Equal(before, after) {
			edits = append(edits, &Edit{Path: path, Name: e.text().Name, Before: before, After: after})
		}
	}
	after, ds := inv.with(ctx, edits...)
	if ds.Err() == nil {
		ds.Add(inv.removedOnly(after, r))
	}
	return edits, after, ds
}

// leaves returns the groups that a host is removed from; nil means that it is removed from all of them.
func (inv *Inventory) leaves(name string, r Removal) []string {
	for _, g := range inv.GroupsOf(name) {
		if slices.Contains(r.Keep, g) {
			return r.From
		}
	}
	return nil
}

// with reads the sources again, with the edited texts in place of the files.
func (inv *Inventory) with(ctx context.Context, edits ...*Edit) (*Inventory, source.Diagnostics) {
	o := inv.options
	o.Edited = maps.Clone(o.Edited)
	if o.Edited == nil {
		o.Edited = map[string][]byte{}
	}
	for _, e := range edits {
		o.Edited[e.Path] = e.After
	}
	return Load(ctx, inv.sources, o)
}

// onlyFile returns the path of the file that hosts are added to.
func (inv *Inventory) onlyFile() (string, *source.Diagnostic) {
	if len(inv.sources) == 0 {
		return "", source.Errorf(source.Pos{}, "there is no inventory to add hosts to").
			WithHelp("pass its file to -i; `kk create inventory` writes one")
	}
	if len(inv.sources) != 1 {
		return "", source.Errorf(source.Pos{}, "hosts can be added to one inventory file, and there are %d sources: %s",
			len(inv.sources), strings.Join(inv.sources, " "))
	}
	name := inv.sources[0]
	if strings.Contains(name, ",") {
		return "", source.Errorf(source.Pos{}, "hosts cannot be added to the list of hosts %q", name)
	}
	path := source.Join(inv.wd, name)
	if info, err := inv.tree.Stat(path); err == nil && info.IsDir() {
		return "", source.Errorf(source.Pos{}, "hosts cannot be added to the inventory folder %s", name).
			WithHelp("pass one of its files to -i")
	}
	if len(inv.files) == 0 {
		return "", source.Errorf(source.Pos{}, "hosts cannot be added to %s: it is an executable, or no file", name)
	}
	return path, nil
}

// edit opens a file for editing.
func (inv *Inventory) edit(path string) (editor, []byte, *source.Diagnostic) {
	name := source.ShownFrom(inv.wd, path)
	before, ok := inv.options.Edited[path]
	if !ok {
		var err error
		if before, err = inv.tree.Raw().Read(path, source.MaxFile); err != nil {
			var pe *fs.PathError
			if errors.As(err, &pe) {
				err = pe.Err
			}
			return nil, nil, source.Errorf(source.Pos{File: source.NewFile(name, nil)}, "read inventory: %v", err)
		}
	}
	if source.IsVault(before) {
		return nil, nil, source.Errorf(source.Pos{File: source.NewFile(name, nil)}, "the inventory is encrypted").
			WithHelp("edit it with `kk vault edit %s`", name)
	}
	f := source.NewFile(name, decode(before))
	if isYAML(f.Text, path) {
		return &yamlEditor{file: f}, before, nil
	}
	return &iniEditor{file: f}, before, nil
}

// decode returns a text as the editors read it: without a byte order mark, with plain line feeds.
func decode(raw []byte) []byte {
	raw = bytes.TrimPrefix(raw, bom)
	if !mixed(raw) {
		raw = bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))
	}
	return raw
}

// encode is the inverse of decode: the text gets the byte order mark and the line ends of the file before.
func encode(before, text []byte) []byte {
	body := bytes.TrimPrefix(before, bom)
	if !mixed(body) && bytes.Contains(body, []byte("\r\n")) {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	}
	if len(body) != len(before) {
		text = append(slices.Clone(bom), text...)
	}
	return text
}

// mixed reports whether only some of the lines end in \r\n.
func mixed(raw []byte) bool {
	crlf := bytes.Count(raw, []byte("\r\n"))
	return crlf > 0 && (crlf != bytes.Count(raw, []byte("\n")) || crlf != bytes.Count(raw, []byte("\r")))
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$`)

// checkAdditions reports names and addresses that cannot be added.
func (inv *Inventory) checkAdditions(hosts []Addition) source.Diagnostics {
	var ds source.Diagnostics
	names, addresses := map[string]string{}, inv.addresses()
	for _, a := range hosts {
		fail := func(format string, args ...any) *source.Diagnostic {
			d := source.Errorf(source.Pos{}, "host %q: "+format, append([]any{a.Name}, args...)...)
			ds.Add(d)
			return d
		}
		other, used := addresses[canonical(a.Address)]
		switch problem := badAddress(a.Address); {
		case !hostName.MatchString(a.Name) || len(a.Name) > 253:
			fail("the name is not valid").WithHelp("use letters, digits, - and ., beginning and ending with a letter or digit")
		case isLocal(a.Name):
			fail("this name means the machine that kk runs on").WithHelp("choose another name")
		case inv.hasGroup(a.Name):
			fail("the inventory has a group of this name").WithHelp("choose another name")
		case problem != "":
			fail("address %q %s", a.Address, problem).WithHelp("write NAME=ADDRESS, as node4=10.0.0.4")
		case names[a.Name] == a.Group:
			fail("it is listed twice").WithHelp("remove one of the two")
		case names[a.Name] != "":
			fail("it is listed for the groups %s and %s", names[a.Name], a.Group).
				WithHelp("name it once; a host that is to be in both groups is added to the other one in the inventory file")
		case inv.Has(a.Name):
			ds.Add(inv.otherAddress(a))
		case used:
			fail("%s is the address of %s", a.Address, other).WithHelp("check the two addresses")
		default:
			addresses[canonical(a.Address)] = a.Name
		}
		names[a.Name] = a.Group
	}
	return ds
}

func (inv *Inventory) hasGroup(name string) bool {
	_, ok := inv.Group(name)
	return ok
}

// canonical returns an address in the one spelling that it is compared in.
func canonical(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil {
		return ip.String()
	}
	return strings.ToLower(address)
}

var numeric = regexp.MustCompile(`^[0-9.]+$`)

// badAddress returns what is wrong with an address, or "".
func badAddress(text string) string {
	if ip, err := netip.ParseAddr(text); err == nil {
		switch {
		case ip.Zone() != "":
			return "has a zone"
		case ip.IsUnspecified(), ip.IsMulticast():
			return "is not that of a host"
		}
		return ""
	}
	switch {
	case text == "":
		return "is empty"
	case numeric.MatchString(text), strings.Count(text, ":") > 1, strings.Contains(text, "/"):
		return "is no IP address"
	case strings.Contains(text, ":"):
		return "has a port; set ansible_port in the inventory file"
	case !hostName.MatchString(text) || len(text) > 253:
		return "is neither an IP address nor a DNS name"
	}
	return ""
}

// addresses returns the names of the hosts by the addresses that they are reached at.
func (inv *Inventory) addresses() map[string]string {
	out := map[string]string{}
	for _, name := range inv.Hosts() {
		if address, _ := inv.address(name); out[canonical(address)] == "" {
			out[canonical(address)] = name
		}
	}
	return out
}

// address returns what a host is reached at, and where that is set: its name if nothing sets it.
func (inv *Inventory) address(name string) (string, source.Pos) {
	layers := inv.VarLayers(name, "")
	for i := len(layers) - 1; i >= 0; i-- {
		if v, ok := layers[i].Values.Get("ansible_host"); ok {
			return value.Str(v), layers[i].At("ansible_host")
		}
	}
	return name, source.Pos{}
}

// otherAddress returns an error if a host of the inventory has another address.
func (inv *Inventory) otherAddress(a Addition) *source.Diagnostic {
	has, at := inv.address(a.Name)
	if canonical(has) == canonical(a.Address) {
		return nil
	}
	if !at.IsValid() {
		at = inv.places[a.Name]
	}
	return source.Errorf(at, "host %q is in the inventory with the address %s, not %s", a.Name, has, a.Address).
		WithHelp("add the host under another name, or change the address here")
}

// addedOnly checks an edited inventory: it has the new hosts, and everything else is as before.
func (inv *Inventory) addedOnly(after *Inventory, e *Edit, hosts []Addition) *source.Diagnostic {
	changed := map[string]bool{}
	for _, a := range hosts {
		changed[a.Name] = true
		has, _ := after.address(a.Name)
		if !slices.Contains(after.GroupsOf(a.Name), a.Group) || canonical(has) != canonical(a.Address) {
			return source.Errorf(source.Pos{File: source.NewFile(e.Name, nil)}, "host %q cannot be added: with it the "+
				"inventory would have it at %s, in the groups %s", a.Name, has, strings.Join(after.GroupsOf(a.Name), ", ")).
				WithHelp("%s", byHand("", hosts))
		}
	}
	if what := inv.differs(after, changed); what != "" {
		at := source.Pos{File: source.NewFile(e.Name, nil)}
		return source.Errorf(at, "the file cannot be edited without a change to %s",
			what).WithHelp("%s", byHand("", hosts))
	}
	return nil
}

// removedOnly checks an edited inventory: the hosts are gone, and everything else is as before.
func (inv *Inventory) removedOnly(after *Inventory, r Removal) *source.Diagnostic {
	changed := map[string]bool{}
	for _, name := range r.Names {
		changed[name] = true
		if !inv.Has(name) || !after.Has(name) {
			continue
		}
		kept := inv.leaves(name, r) != nil
		for _, g := range after.GroupsOf(name) {
			if !kept || slices.Contains(r.From, g) {
				return source.Errorf(inv.places[name], "host %q cannot be removed from the group %s", name, g).
					WithHelp("remove it yourself")
			}
		}
		if !kept {
			return source.Errorf(inv.places[name], "host %q cannot be removed: something else than a file lists it", name).
				WithHelp("remove it there")
		}
		if was, _ := inv.address(name); was != second(after.address(name)) {
			return source.Errorf(inv.places[name], "host %q stays in the inventory for its other groups, but its variables "+
				"are in a group that it leaves", name).WithHelp("move them to another group, and remove it from %s",
				strings.Join(r.From, ", "))
		}
	}
	if what := inv.differs(after, changed); what != "" {
		return source.Errorf(source.Pos{}, "the hosts cannot be removed without a change to %s", what).
			WithHelp("remove them from the inventory yourself: %s", strings.Join(r.Names, ", "))
	}
	return nil
}

func second(address string, _ source.Pos) string { return address }

// differs names a host or a group that is not as before, "" if there is none. The hosts of changed are not looked at.
func (inv *Inventory) differs(after *Inventory, changed map[string]bool) string {
	rest := func(hosts []string) []string {
		return slices.DeleteFunc(slices.Clone(hosts), func(h string) bool { return changed[h] })
	}
	if !slices.Equal(rest(inv.Hosts()), rest(after.Hosts())) {
		return "other hosts"
	}
	for _, name := range rest(inv.Hosts()) {
		a, _ := inv.Host(name)
		b, _ := after.Host(name)
		if !slices.Equal(a.Groups, b.Groups) || !sameVars(a.Vars, b.Vars) {
			return "host " + name
		}
	}
	for _, name := range inv.Groups() {
		a, _ := inv.Group(name)
		b, ok := after.Group(name)
		if !ok || !slices.Equal(rest(a.Hosts), rest(b.Hosts)) || !sameVars(a.Vars, b.Vars) ||
			slices.ContainsFunc(a.Children, func(c string) bool { return !slices.Contains(b.Children, c) }) {
			return "group " + name
		}
	}
	return ""
}

func sameVars(a, b []*VarSet) bool {
	return slices.EqualFunc(a, b, func(a, b *VarSet) bool {
		one, err1 := value.JSON(a.Values, value.JSONOptions{}) // encrypted values have none of their lines in it
		two, err2 := value.JSON(b.Values, value.JSONOptions{})
		return err1 == nil && err2 == nil && one == two
	})
}
