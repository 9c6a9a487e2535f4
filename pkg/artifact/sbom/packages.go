package sbom

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// Files of package databases, below the root of an image.
const (
	dpkgStatus = "var/lib/dpkg/status"
	// dpkgParts has a file for each package, in images that are made without dpkg (distroless).
	dpkgParts = "var/lib/dpkg/status.d"
)

var (
	apkInstalled = []string{"lib/apk/db/installed", "usr/lib/apk/db/installed"}
	rpmDatabases = []string{"var/lib/rpm/Packages", "var/lib/rpm/Packages.db", "var/lib/rpm/rpmdb.sqlite",
		"usr/lib/sysimage/rpm/Packages.db", "usr/lib/sysimage/rpm/rpmdb.sqlite"}
	releaseFiles = []string{"etc/os-release", "usr/lib/os-release"} // in the order of os-release(5)
)

var errRPM = errors.New("databases of RPM are not read")

// isDpkgPart reports whether a path is one of dpkgParts. The files next to them with checksums are not.
func isDpkgPart(name string) bool {
	return path.Dir(name) == dpkgParts && !strings.HasSuffix(name, ".md5sums")
}

// lines calls use with each line, without its end. A line longer than a name may be is cut.
func lines(r io.Reader, use func(string) error) error {
	b := bufio.NewReaderSize(r, 2*longest)
	for {
		line, err := b.ReadSlice('\n')
		start := string(bytes.TrimRight(line, "\r\n"))
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = b.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if start != "" || err == nil {
			if stop := use(start); stop != nil {
				return stop
			}
		}
		if err != nil {
			return nil
		}
	}
}

// readDpkg reads a file of control paragraphs, deb822(5): the status of dpkg, or the control file of a
// package. It calls keep with each package that is installed; a control file has no status.
func readDpkg(r io.Reader, keep func(pack) error) error {
	p, installed := pack{Type: "deb"}, true
	end := func() error {
		one, has := p, installed
		p, installed = pack{Type: "deb"}, true
		if !has || one.Name == "" || one.Version == "" {
			return nil
		}
		return keep(one)
	}
	err := lines(r, func(line string) error {
		if strings.TrimSpace(line) == "" {
			return end()
		}
		// The name of a line that continues the one before begins with a blank.
		name, value, _ := strings.Cut(line, ":")
		value = text(value)
		switch strings.ToLower(name) {
		case "package":
			p.Name = value
		case "version":
			p.Version = value
		case "architecture":
			p.Architecture = value
		case "source":
			p.Source, _, _ = strings.Cut(value, " ")
		case "status":
			fields := strings.Fields(value)
			installed = len(fields) == 3 && fields[2] == "installed"
		}
		return nil
	})
	return cmp.Or(err, end())
}

// readApk reads the database of apk: paragraphs of lines "letter:value", apk-package(5). It calls keep with
// each package.
func readApk(r io.Reader, keep func(pack) error) error {
	p := pack{Type: "apk"}
	end := func() error {
		one := p
		p = pack{Type: "apk"}
		if one.Name == "" || one.Version == "" {
			return nil
		}
		return keep(one)
	}
	err := lines(r, func(line string) error {
		if line == "" {
			return end()
		}
		name, value, _ := strings.Cut(line, ":")
		value = text(value)
		switch name {
		case "P":
			p.Name = value
		case "V":
			p.Version = value
		case "A":
			p.Architecture = value
		case "L":
			p.Licence = value
		case "o":
			p.Source = value
		}
		return nil
	})
	return cmp.Or(err, end())
}

// readRelease reads os-release(5).
func readRelease(r io.Reader) (osRelease, error) {
	var out osRelease
	err := lines(r, func(line string) error {
		name, value, _ := strings.Cut(line, "=")
		value = text(strings.Trim(value, `"'`))
		switch name {
		case "ID":
			out.ID = strings.ToLower(value)
		case "VERSION_ID":
			out.Version = value
		}
		return nil
	})
	return out, err
}

// arStart begins an ar archive whose first entry is that of a Debian package, deb(5).
const arStart = "!<arch>\ndebian-binary"

// controlArchive is the name of the archive with the control file, before that of its compression.
const controlArchive = "control.tar"

// arHeader is the length of the header of an entry of an ar archive.
const arHeader = 60

// control finds the archive with the control file in a Debian package, and returns its name and the rest of r.
func control(r io.Reader) (name string, from io.Reader, err error) {
	if _, err := io.CopyN(io.Discard, r, int64(len("!<arch>\n"))); err != nil {
		return "", nil, err
	}
	h := make([]byte, arHeader)
	for range 8 { // it is the second entry, unless there are others that the format reserves
		if _, err := io.ReadFull(r, h); err != nil {
			return "", nil, err
		}
		var size int64
		if _, err := fmt.Sscanf(strings.TrimSpace(string(h[48:58])), "%d", &size); err != nil || size < 0 {
			return "", nil, errors.New("an entry has no valid size")
		}
		name := strings.TrimSuffix(strings.TrimSpace(string(h[:16])), "/")
		if strings.HasPrefix(name, controlArchive) {
			return name, io.LimitReader(r, size), nil
		}
		if _, err := io.CopyN(io.Discard, r, size+size%2); err != nil {
			return "", nil, err
		}
	}
	return "", nil, errors.New("it has no control archive")
}
