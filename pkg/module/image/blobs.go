package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"kubekey/pkg/module"
)

// blobsAtOnce is how many blobs of one image are fetched at once.
const blobsAtOnce = 3

// blobReader opens a blob at an offset. It may begin at 0 instead, and returns where it begins.
type blobReader func(ctx context.Context, h v1.Hash, offset int64) (content io.ReadCloser, at int64, err error)

// client returns the client for what is read of the repository. It is made once.
func (r *registryPlace) client(ctx context.Context) (*http.Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.http != nil {
		return r.http, nil
	}
	repo := r.ref.Context()
	auth, err := r.access.Resolve(repo)
	if err != nil {
		return nil, err
	}
	t, err := transport.NewWithContext(ctx, repo.Registry, auth, r.access, []string{repo.Scope(transport.PullScope)})
	if err != nil {
		return nil, err
	}
	r.http = &http.Client{Transport: t}
	return r.http, nil
}

// address is a URL of the repository.
func (r *registryPlace) address(kind, argument string) string {
	repo := r.ref.Context()
	u := url.URL{Scheme: repo.Scheme(), Host: repo.RegistryStr(),
		Path: fmt.Sprintf("/v2/%s/%s/%s", repo.RepositoryStr(), kind, argument)}
	return u.String()
}

// blobs returns a reader of blobs that can resume them.
func (r *registryPlace) blobs(ctx context.Context) (blobReader, error) {
	client, err := r.client(ctx)
	if err != nil {
		return nil, err
	}
	get := func(ctx context.Context, h v1.Hash, offset int64) (io.ReadCloser, int64, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.address("blobs", h.String()), nil)
		if err != nil {
			return nil, 0, err
		}
		if offset > 0 {
			req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, 0, err
		}
		if err := transport.CheckError(resp, http.StatusOK, http.StatusPartialContent); err != nil {
			return nil, 0, errors.Join(err, resp.Body.Close())
		}
		if resp.StatusCode == http.StatusOK {
			offset = 0
		}
		return resp.Body, offset, nil
	}
	return func(ctx context.Context, h v1.Hash, offset int64) (io.ReadCloser, int64, error) {
		content, at, err := get(ctx, h, offset)
		var rejected *transport.Error
		if offset > 0 && errors.As(err, &rejected) {
			return get(ctx, h, 0) // some registries reject ranges instead of ignoring them
		}
		return content, at, err
	}, nil
}

// imageReader reads the blobs of an image without resuming them.
func imageReader(image v1.Image) blobReader {
	return func(_ context.Context, h v1.Hash, _ int64) (io.ReadCloser, int64, error) {
		if config, err := image.ConfigName(); err == nil && config == h {
			text, err := image.RawConfigFile()
			return io.NopCloser(bytes.NewReader(text)), 0, err
		}
		layer, err := image.LayerByDigest(h)
		if err != nil {
			return nil, 0, err
		}
		content, err := layer.Compressed()
		return content, 0, err
	}
}

// fetchImage writes the blobs of an image, several at once, and its manifest last.
func (l *layoutPlace) fetchImage(ctx context.Context, p picture, image v1.Image, report *reported) error {
	m, err := image.Manifest()
	if err != nil {
		return err
	}
	read := p.blobs
	if read == nil {
		read = imageReader(image)
	}
	all := []v1.Descriptor{m.Config}
	for _, d := range m.Layers {
		if d.MediaType.IsDistributable() {
			all = append(all, d)
		}
	}
	problems := make([]error, len(all))
	module.Parallel(len(all), blobsAtOnce, func(i int) {
		if problems[i] = l.fetch(ctx, all[i], read); problems[i] == nil {
			report.add(all[i].Size)
		}
	})
	if err := errors.Join(problems...); err != nil {
		return err
	}
	text, err := image.RawManifest()
	if err != nil {
		return err
	}
	return l.put(ctx, text)
}

// put writes a manifest.
func (l *layoutPlace) put(ctx context.Context, text []byte) error {
	sum := sha256.Sum256(text)
	d := v1.Descriptor{Size: int64(len(text)), Digest: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}}
	return l.fetch(ctx, d, func(context.Context, v1.Hash, int64) (io.ReadCloser, int64, error) {
		return io.NopCloser(bytes.NewReader(text)), 0, nil
	})
}

// fetch writes a blob unless it is complete. What arrived before is kept next to it, in BLOB.part.
func (l *layoutPlace) fetch(ctx context.Context, d v1.Descriptor, read blobReader) error {
	path := l.blob(d.Digest)
	lock := l.locks.of(path) // images share layers
	lock.Lock()
	defer lock.Unlock()
	if err := l.verifyBlob(d, true); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	_, err := os.Stat(path + ".part")
	resumed := err == nil
	err = l.fetchPart(ctx, d, read, path)
	if damaged := (*damagedError)(nil); resumed && errors.As(err, &damaged) {
		return l.fetchPart(ctx, d, read, path) // the part was of other bytes, and is removed
	}
	return err
}

// fetchPart adds what PATH.part lacks, and gives it its name. If that is another blob, it is removed.
func (l *layoutPlace) fetchPart(ctx context.Context, d v1.Descriptor, read blobReader, path string) error {
	part, err := os.OpenFile(path+".part", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = part.Close() }() // an error has been returned, or everything is written
	sum := sha256.New()
	have, err := io.Copy(sum, io.LimitReader(part, d.Size))
	if err != nil {
		return err
	}
	if have < d.Size {
		content, at, err := read(ctx, d.Digest, have)
		if err != nil {
			return err
		}
		defer func() { _ = content.Close() }() // only read
		if at == 0 {
			sum.Reset()
			have = 0
		}
		if err := part.Truncate(have); err != nil {
			return err
		}
		if _, err := part.Seek(have, io.SeekStart); err != nil {
			return err
		}
		n, err := io.Copy(io.MultiWriter(part, sum), io.LimitReader(content, d.Size-have+1))
		if err != nil {
			return err
		}
		if have += n; have < d.Size {
			return io.ErrUnexpectedEOF
		}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != d.Digest.Hex || have > d.Size {
		return errors.Join(&damagedError{d.Digest, "has the digest sha256:" + got}, os.Remove(path+".part"))
	}
	if err := part.Truncate(d.Size); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// reported adds up what is done, and reports it in that order.
type reported struct {
	progress func(done, total int64)
	total    int64
	mu       sync.Mutex
	done     int64
}

func (r *reported) add(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done += n
	r.progress(r.done, r.total)
}

// sizeOf is how many bytes a layout gets with an image.
func sizeOf(images []v1.Image) (total int64) {
	for _, i := range images {
		m, err := i.Manifest()
		if err != nil {
			continue // the next step reports it
		}
		total += m.Config.Size
		for _, d := range m.Layers {
			total += d.Size
		}
	}
	return total
}

// images lists the images of a picture that are copied, and the texts of its indexes.
func (p picture) images() (all []v1.Image, indexes [][]byte, err error) {
	if p.index == nil {
		return []v1.Image{p.image}, nil, nil
	}
	m, err := p.index.IndexManifest()
	if err != nil {
		return nil, nil, err
	}
	for _, d := range m.Manifests {
		switch {
		case !p.has(d.Digest):
		case d.MediaType.IsIndex():
			inner, err := p.index.ImageIndex(d.Digest)
			if err != nil {
				return nil, nil, err
			}
			below, texts, err := picture{index: inner}.images()
			if err != nil {
				return nil, nil, err
			}
			all, indexes = append(all, below...), append(indexes, texts...)
		default:
			image, err := p.index.Image(d.Digest)
			if err != nil {
				return nil, nil, err
			}
			all = append(all, image)
		}
	}
	text, err := p.index.RawManifest()
	return all, append(indexes, text), err
}

// fetchAll writes everything that an image consists of.
func (l *layoutPlace) fetchAll(ctx context.Context, p picture, progress func(done, total int64)) error {
	images, indexes, err := p.images()
	if err != nil {
		return err
	}
	report := &reported{progress: progress, total: sizeOf(images)}
	for _, image := range images {
		if err := l.fetchImage(ctx, p, image, report); err != nil {
			return err
		}
	}
	for _, text := range indexes {
		if err := l.put(ctx, text); err != nil {
			return err
		}
	}
	return nil
}
