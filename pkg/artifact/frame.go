package artifact

import (
	"archive/tar"
	"bytes"
	"fmt"
	"strings"
	"time"
)

// The file is an uncompressed tar in ustar format. Everything in its headers but name and size is
// constant, so a header is known before it is read, and any other header is rejected.

const (
	block = 512
	// trailer is the end of a tar: two empty blocks.
	trailer = 2 * block
	// maxBlob is the largest size that a ustar header holds.
	maxBlob = 1<<33 - 1

	layoutName   = "oci-layout"
	indexName    = "index.json"
	manifestName = "kk/manifest.json"
	deltaName    = "kk/delta.json"
	layoutText   = `{"imageLayoutVersion":"1.0.0"}` + "\n"
)

// blobName is the name of a blob in the file.
func blobName(digest string) string { return "blobs/" + strings.Replace(digest, ":", "/", 1) }

// header returns the header block of an entry.
func header(name string, size int64) ([]byte, error) {
	var b bytes.Buffer
	err := tar.NewWriter(&b).WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b.Bytes(), nil
}

// padded is the room that size bytes take in a tar.
func padded(size int64) int64 { return (size + block - 1) / block * block }

// parseHeader reads a header block.
func parseHeader(got []byte) (*tar.Header, error) { return tar.NewReader(bytes.NewReader(got)).Next() }
