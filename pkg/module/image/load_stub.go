package image

import (
	"context"

	"kubekey/pkg/module"
)

type Load struct {
	Artifact []string `kk:"artifact,required" doc:"x"`
	Images   []string `kk:"images,required" doc:"x"`
	Platform string   `kk:"platform" doc:"x"`
	Ctr      string   `kk:"ctr" doc:"x"`
}

func (*Load) Run(context.Context, *module.Call) (module.Result, error) { return module.Result{}, nil }
func loadSpec() module.Spec {
	return module.Spec{Name: "image_load", Collection: "kk", Summary: "x.", New: func() module.Runner { return &Load{} }}
}
