package sbom

import (
	"errors"
	"fmt"
	"io"
)

// limits bound what is read of one blob.
type limits struct {
	entries  int   // of an archive
	unpacked int64 // bytes of an archive; ratio times its size, if that is more
	ratio    int64
	program  int64 // bytes of an executable
	database int64 // bytes of one file of a package database
	peeked   int64 // bytes that are read to find the build information, or the directory of a zip
	found    int   // modules, packages and removed paths
	texts    int   // bytes of their names and versions
	problems int
}

var defaultLimits = limits{
	entries: 1_000_000, unpacked: 256 << 20, ratio: 64, program: 1 << 30, database: 32 << 20, peeked: 4 << 20,
	found: 100_000, texts: 8 << 20, problems: 20,
}

// shortest is the size of the smallest file that can be a Go program.
const shortest = 64 << 10

// longest is the length in bytes of the longest name that is kept.
const longest = 1024

// budget is what may be read, by several readers together.
type budget struct {
	left int64
	err  error
	over bool // more was asked for
}

// bounded fails when more than its budget is read from it.
type bounded struct {
	from   io.Reader
	budget *budget
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.budget.left <= 0 {
		b.budget.over = true
		return 0, b.budget.err
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.budget.left)])
	b.budget.left -= int64(n)
	return n, err
}

// boundedAt is the same for reading at offsets. It is not used concurrently.
type boundedAt struct {
	from   io.ReaderAt
	budget *budget
}

func (b *boundedAt) ReadAt(p []byte, at int64) (int, error) {
	if int64(len(p)) > b.budget.left {
		b.budget.over = true
		return 0, b.budget.err
	}
	b.budget.left -= int64(len(p))
	return b.from.ReadAt(p, at)
}

func (l limits) archive(size int64) *budget {
	most := max(l.unpacked, l.ratio*size)
	return newBudget(most, "it unpacks to more than %d bytes: the rest is not read")
}

// newBudget allows most bytes. The format of the error has their number.
func newBudget(most int64, format string) *budget {
	return &budget{left: most, err: fmt.Errorf(format, most)}
}

var errLongName = fmt.Errorf("its name is longer than %d bytes: it is not read", longest)

var errTooMany = errors.New("it has too many programs and packages: the rest is not read")
