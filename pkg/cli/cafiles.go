package cli

import (
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"kubekey/pkg/certs"
	"kubekey/pkg/config"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// checkCA checks that two files are a CA which can sign certificates now: its certificate and its key.
func checkCA(r config.Rule, merged *config.Config, now time.Time) source.Diagnostics {
	if len(r.Of) != 2 {
		return source.Diagnostics{source.Errorf(r.At, "the check %q needs two keys", r.Check)}
	}
	var ds source.Diagnostics
	fail := func(i int, format string, args ...any) {
		ds.Add(merged.Problem(strings.Split(r.Of[i], "."), fmt.Sprintf(format, args...), r.Help))
	}
	var names [2]string
	for i, key := range r.Of {
		v, _ := merged.Get(strings.Split(key, ".")...)
		names[i] = value.Str(v)
	}
	switch {
	case names[0] == "" && names[1] == "":
		return nil
	case names[0] == "":
		fail(1, "the certificate of the CA is missing: %s", r.Of[0])
		return ds
	case names[1] == "":
		fail(0, "the key of the CA is missing: %s", r.Of[1])
		return ds
	}
	list, err := certs.ReadCerts(names[0])
	switch {
	case err != nil:
		fail(0, "%s", err)
	case len(list) > 1:
		fail(0, "%s holds %d certificates: only that of the CA may be in there", names[0], len(list))
	default:
		for _, problem := range caProblems(list[0], now) {
			fail(0, "%s %s", names[0], problem)
		}
	}
	key, err := certs.ReadKey(names[1])
	switch {
	case err != nil:
		fail(1, "%s", err)
	case len(list) == 1 && !certs.Same(list[0].PublicKey, key.Public()):
		fail(1, "%s is not the key of %s", names[1], names[0])
	}
	return ds
}

// caProblems returns why a certificate cannot be that of a CA now.
func caProblems(crt *x509.Certificate, now time.Time) []string {
	var out []string
	if !crt.IsCA || crt.KeyUsage != 0 && crt.KeyUsage&x509.KeyUsageCertSign == 0 {
		out = append(out, fmt.Sprintf("(%s) is not a CA: it may not sign certificates", crt.Subject))
	}
	switch {
	case now.Before(crt.NotBefore):
		out = append(out, "is not valid before "+crt.NotBefore.Format(time.DateOnly))
	case !crt.NotAfter.After(now):
		out = append(out, "expired on "+crt.NotAfter.Format(time.DateOnly))
	}
	return out
}
