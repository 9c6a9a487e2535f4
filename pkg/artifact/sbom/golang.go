package sbom

import (
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
)

// executables are the first bytes of formats that Go programs have: ELF, Mach-O (both orders, 32 and 64
// bits), PE.
var executables = []string{
	"\x7fELF", "\xfe\xed\xfa\xce", "\xfe\xed\xfa\xcf", "\xce\xfa\xed\xfe", "\xcf\xfa\xed\xfe", "MZ",
}

func isExecutable(start []byte) bool {
	for _, magic := range executables {
		if strings.HasPrefix(string(start), magic) {
			return true
		}
	}
	return false
}

// readProgram reads the build information of a Go program. ok is false if it is none.
func readProgram(from io.ReaderAt, l limits) (p program, ok bool, err error) {
	// The package debug/elf may panic on hostile input, as its documentation says.
	defer func() {
		if r := recover(); r != nil {
			p, ok, err = program{}, false, fmt.Errorf("its headers are broken: %v", r)
		}
	}()
	b := newBudget(l.peeked, "more than %d bytes had to be read to find its build information")
	at := &boundedAt{from, b}
	if !mayBeGo(at) && !b.over {
		return program{}, false, nil
	}
	info, err := buildinfo.Read(at)
	switch {
	case b.over:
		return program{}, false, b.err
	case err != nil:
		return program{}, false, nil // another language, or no program
	}
	p = program{Go: text(info.GoVersion), Path: text(info.Path), Main: asModule(&info.Main)}
	for _, dep := range info.Deps {
		if m := asModule(dep); m.Path != "" {
			p.Modules = append(p.Modules, m)
		}
	}
	return p, true, nil
}

// mayBeGo looks for the section that Go programs have in ELF. Without it, the whole data segment would be
// searched, which is large in some programs of other languages.
func mayBeGo(from io.ReaderAt) bool {
	f, err := elf.NewFile(from)
	return err != nil || len(f.Sections) == 0 || f.Section(".go.buildinfo") != nil
}

func asModule(m *debug.Module) module {
	if m.Replace == nil {
		return module{Path: text(m.Path), Version: release(m.Version)}
	}
	return module{Path: text(m.Replace.Path), Version: release(m.Replace.Version),
		For: strings.TrimSuffix(text(m.Path)+"@"+release(m.Version), "@")}
}

// release is the version of a module, "" if it has none.
func release(version string) string {
	if version == "(devel)" {
		return ""
	}
	return text(version)
}

// text is what a hostile file may add to a document: valid UTF-8 without control characters, of limited length.
func text(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s[:min(len(s), longest)], "\uFFFD"))
	return strings.TrimSpace(s)
}

var errNoProgram = errors.New("it is larger than any program: it is not read")
