package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"kubekey/pkg/artifact/artifacttest"
)

// TestManyAtOnce has more clients than decoders.
func TestManyAtOnce(t *testing.T) {
	o, s := start(t)
	var group sync.WaitGroup
	for n := range 3 * maxDecoders {
		group.Go(func() {
			for _, c := range []struct {
				path, ask string
				want      []byte
			}{
				{kubeadm, "", o.Program}, {chart, "", o.Chart},
				{kubeadm, fmt.Sprintf("bytes=%d-%d", 10_000*n, 10_000*n+99), o.Program[10_000*n : 10_000*n+100]},
			} {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+c.path, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if c.ask != "" {
					req.Header.Set("Range", c.ask)
				}
				res, err := plainClient.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(res.Body)
				if err = errors.Join(err, res.Body.Close()); err != nil || !bytes.Equal(body, c.want) {
					t.Errorf("%s %s: %d bytes, %v", c.path, c.ask, len(body), err)
				}
			}
		})
	}
	group.Wait()
}

// stuck is a client that accepts nothing until it is released.
type stuck struct {
	*httptest.ResponseRecorder
	began   func()
	release chan struct{}
}

func (s stuck) Write(b []byte) (int, error) {
	s.began()
	<-s.release
	return len(b), nil
}

// TestDecodersHaveTurns: who finds all decoders in use waits, as long as the client does.
func TestDecodersHaveTurns(t *testing.T) {
	o := artifacttest.Sample(t, nil)
	log := &problemLog{}
	h := handler(t, log, o.Path)
	release := make(chan struct{})
	var began, ended sync.WaitGroup
	for range maxDecoders {
		began.Add(1)
		ended.Go(func() {
			h.ServeHTTP(stuck{httptest.NewRecorder(), sync.OnceFunc(began.Done), release}, request(t.Context()))
		})
	}
	began.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	func() {
		defer func() {
			if recover() != http.ErrAbortHandler {
				t.Error("a decoder more was used, or the client got an answer")
			}
		}()
		h.ServeHTTP(httptest.NewRecorder(), request(ctx))
	}()
	close(release)
	ended.Wait()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request(t.Context()))
	if !bytes.Equal(w.Body.Bytes(), o.Program) || len(h.decoders) != 0 || log.text() != "" {
		t.Errorf("%d bytes, %d decoders in use, %s", w.Body.Len(), len(h.decoders), log.text())
	}
}

func request(ctx context.Context) *http.Request {
	return httptest.NewRequest(http.MethodGet, kubeadm, nil).WithContext(ctx)
}
