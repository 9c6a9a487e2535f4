package connector

import "context"

type hushKey struct{}

// Hush marks the commands of a task whose output is not to be shown (no_log):
// whoever logs command lines leaves these out.
func Hush(ctx context.Context) context.Context { return context.WithValue(ctx, hushKey{}, true) }

// Hushed reports whether Hush marked the context.
func Hushed(ctx context.Context) bool { return ctx.Value(hushKey{}) != nil }
