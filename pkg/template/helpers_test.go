package template

import "kubekey/pkg/value"

func repr(v any) string { return value.Repr(v) }
