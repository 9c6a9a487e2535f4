package sbom

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// Of the .xz file format 1.2.1.
const (
	xzStart  = "\xfd7zXZ\x00"
	xzHeader = 12   // bytes before the first block
	xzLZMA2  = 0x21 // id of the filter
	// xzDictionary is the largest dictionary in bytes that is allocated: xz -9 has one of this size.
	xzDictionary = 64 << 20
)

// xzBlock reads the first block of an .xz file. The library's own reader of this format allocates any
// dictionary that a file asks for, up to 4 GiB. What small files consist of is one block.
func xzBlock(from io.Reader) (io.Reader, error) {
	r := bufio.NewReader(from)
	if _, err := r.Discard(xzHeader); err != nil {
		return nil, err
	}
	size, err := r.ReadByte()
	if err != nil {
		return nil, err
	}
	header := make([]byte, int(size)*4+3)
	if _, err := io.ReadFull(r, header); err != nil || size == 0 {
		return nil, errors.Join(errors.New("it has no block"), err)
	}
	flags, fields := header[0], header[1:]
	for _, has := range []byte{0x40, 0x80} { // the sizes
		if flags&has != 0 {
			_, n := binary.Uvarint(fields)
			if n <= 0 {
				return nil, errors.New("its block header is broken")
			}
			fields = fields[n:]
		}
	}
	if flags&3 != 0 || len(fields) < 3 || fields[0] != xzLZMA2 || fields[1] != 1 {
		return nil, errors.New("its block has other filters than LZMA2")
	}
	dictionary, err := lzma.DecodeDictCap(fields[2])
	if err != nil || dictionary > xzDictionary {
		return nil, errors.Join(fmt.Errorf("its dictionary is larger than %d bytes", xzDictionary), err)
	}
	return lzma.Reader2Config{DictCap: int(max(dictionary, lzma.MinDictCap))}.NewReader2(r)
}
