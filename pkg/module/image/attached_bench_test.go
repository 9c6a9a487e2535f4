package image

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kubekey/pkg/module/moduletest"
)

// BenchmarkAttached fetches 20 images for two architectures, each of two layers of 2 MB, as an export does, with and
// without what is attached to them: nothing, which is how most images are.
func BenchmarkAttached(b *testing.B) {
	s := newServer(b, httptest.NewServer, registry.WithReferrersSupport(true))
	var names []string
	for i := range 20 {
		index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
		for _, arch := range []string{"amd64", "arm64"} {
			image, err := random.Image(2<<20, 2)
			if err != nil {
				b.Fatal(err)
			}
			config, err := image.ConfigFile()
			if err != nil {
				b.Fatal(err)
			}
			config = config.DeepCopy()
			config.OS, config.Architecture = "linux", arch
			if image, err = mutate.ConfigFile(image, config); err != nil {
				b.Fatal(err)
			}
			index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
				Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
		}
		name := fmt.Sprintf("app%d:1", i)
		s.push(b, name, index)
		names = append(names, name)
	}
	var requests atomic.Int64
	s.first = func(http.ResponseWriter, *http.Request) bool { requests.Add(1); return false }
	for _, attached := range []bool{false, true} {
		b.Run(fmt.Sprintf("attached=%v", attached), func(b *testing.B) {
			requests.Store(0)
			for b.Loop() {
				args := pull(s, b.TempDir(), names...)
				args.Set("attached", attached)
				if r := moduletest.Run(b, moduletest.Find(b, Modules(), "image"), args, moduletest.Options{}); r.Failed {
					b.Fatal(r.Msg)
				}
			}
			b.ReportMetric(float64(requests.Load())/float64(b.N), "requests/op")
		})
	}
}
