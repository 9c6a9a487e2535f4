package offline

import (
	"compress/gzip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"kubekey/pkg/artifact"
)

// needed is what a host needs of which it lacks something.
type needed struct {
	Host          string   `kk:"host,required" doc:"name of the host"`
	Distributions []string `kk:"distributions,required" doc:"names of its distribution, such as debian-12.5 and debian-12"`
	Arch          string   `kk:"arch,required" doc:"its architecture, such as amd64"`
	Names         []string `kk:"names,required" doc:"names of packages"`
}

// neededPackages lists what hosts need and the files lack, each with the hosts and the export that would bring
// it. found is called with what the files have.
func neededPackages(set artifact.Set, hosts []needed, found func(*artifact.File, artifact.Item)) ([]string, error) {
	type lack struct {
		what, distribution, arch string
		packages                 bool
	}
	var order []lack
	by := map[lack][]string{}
	note := func(l lack, host string) {
		if by[l] == nil {
			order = append(order, l)
		}
		by[l] = append(by[l], host)
	}
	provided := map[string]map[string]bool{}
	for _, h := range hosts {
		distribution, files := repositoryFor(set, h.Distributions, h.Arch)
		if files == nil {
			d := h.Distributions[len(h.Distributions)-1]
			note(lack{fmt.Sprintf("packages for %s %s", d, h.Arch), d, h.Arch, false}, h.Host)
			continue
		}
		key := distribution + "/" + h.Arch
		if provided[key] == nil {
			names, err := providedBy(files)
			if err != nil {
				return nil, err
			}
			provided[key] = names
			for _, f := range files {
				found(f.file, f.item)
			}
		}
		for _, name := range h.Names {
			if !provided[key][name] {
				note(lack{name, distribution, h.Arch, true}, h.Host)
			}
		}
	}
	var missing []string
	for _, l := range order {
		slices.Sort(by[l])
		option, what := "", l.what
		if l.packages {
			option, what = " --package "+l.what, fmt.Sprintf("package %s for %s %s", l.what, l.distribution, l.arch)
		}
		missing = append(missing, fmt.Sprintf("%s, needed by %s: kk artifact export --os %s --arch %s%s", what,
			strings.Join(by[l], ", "), l.distribution, l.arch, option))
	}
	return missing, nil
}

// repositoryFor returns the repository of the first distribution that the files have, nil without one.
func repositoryFor(set artifact.Set, distributions []string, arch string) (string, []packageFile) {
	for _, d := range distributions {
		if files := repositoryOf(set, d, arch); files != nil {
			return d, files
		}
	}
	return "", nil
}

// providedBy returns the names of the packages of a repository, and those that they stand for.
func providedBy(files []packageFile) (map[string]bool, error) {
	names := map[string]bool{}
	for _, f := range files {
		names[f.item.Name] = f.item.Version != ""
		read := standInsOfDebs
		if path.Dir(f.path) == "repodata" && strings.HasSuffix(f.path, "-primary.xml.gz") {
			read = standInsOfRPMs
		} else if f.path != "Packages" {
			continue
		}
		content, err := f.file.Content(f.item)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(read(content, names), content.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", f.item, err)
		}
	}
	return names, nil
}

// maxPackages bounds the memory for the list of a repository, in bytes.
const maxPackages = 64 << 20

// standInsOfDebs adds the names in the fields Provides of a Packages file.
func standInsOfDebs(content io.Reader, names map[string]bool) error {
	text, err := io.ReadAll(io.LimitReader(content, maxPackages))
	for line := range strings.Lines(string(text)) {
		if list, ok := strings.CutPrefix(line, "Provides:"); ok {
			for one := range strings.SplitSeq(list, ",") {
				name, _, _ := strings.Cut(strings.TrimSpace(one), " ")
				names[name] = true
			}
		}
	}
	return err
}

// standInsOfRPMs adds the names in the elements rpm:provides of a list of packages in repodata.
func standInsOfRPMs(content io.Reader, names map[string]bool) error {
	z, err := gzip.NewReader(content)
	if err != nil {
		return err
	}
	d := xml.NewDecoder(io.LimitReader(z, maxPackages))
	for inside := false; ; {
		token, err := d.Token()
		switch e := token.(type) {
		case nil:
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		case xml.StartElement:
			inside = inside || e.Name.Local == "provides"
			for _, a := range e.Attr {
				if inside && e.Name.Local == "entry" && a.Name.Local == "name" {
					names[a.Value] = true
				}
			}
		case xml.EndElement:
			inside = inside && e.Name.Local != "provides"
		}
	}
}
