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

// checkFiles checks the certificates and keys in the files that the keys of a rule name.
func checkFiles(r config.Rule, merged *config.Config, now time.Time) source.Diagnostics {
	c := filesCheck{rule: r, merged: merged}
	for _, key := range r.Of {
		v, _ := merged.Get(strings.Split(key, ".")...)
		c.names = append(c.names, value.Str(v))
	}
	switch {
	case r.Check == config.CheckCerts && len(r.Of) == 1:
		if c.names[0] != "" {
			c.certs()
		}
	case r.Check == config.CheckCA && len(r.Of) == 2:
		c.pair(now, true)
	case r.Check == config.CheckPair && len(r.Of) == 2:
		c.pair(now, false)
	default:
		return source.Diagnostics{source.Errorf(r.At, "there is no check %q of %d keys", r.Check, len(r.Of))}
	}
	return c.ds
}

// filesCheck collects what is wrong with the files of a rule.
type filesCheck struct {
	rule   config.Rule
	merged *config.Config
	names  []string // of the files, by key of the rule
	ds     source.Diagnostics
}

// fail reports a problem at a key of the rule.
func (c *filesCheck) fail(key int, format string, args ...any) {
	c.ds.Add(c.merged.Problem(strings.Split(c.rule.Of[key], "."), fmt.Sprintf(format, args...), c.rule.Help))
}

// certs reads the certificates of the first file.
func (c *filesCheck) certs() []*x509.Certificate {
	list, err := certs.ReadCerts(c.names[0])
	if err != nil {
		c.fail(0, "%s", err)
	}
	return list
}

// pair checks a certificate, which may have to be that of a CA, and its key.
func (c *filesCheck) pair(now time.Time, ca bool) {
	switch {
	case c.names[0] == "" && c.names[1] == "":
		return
	case c.names[0] == "":
		c.fail(1, "the certificate is missing: %s", c.rule.Of[0])
		return
	case c.names[1] == "":
		c.fail(0, "the key is missing: %s", c.rule.Of[1])
		return
	}
	list := c.certs()
	switch {
	case ca && len(list) > 1:
		c.fail(0, "%s holds %d certificates: only that of the CA may be in there", c.names[0], len(list))
	case len(list) > 0:
		for _, problem := range certProblems(list[0], now, ca) {
			c.fail(0, "%s %s", c.names[0], problem)
		}
	}
	key, err := certs.ReadKey(c.names[1])
	switch {
	case err != nil:
		c.fail(1, "%s", err)
	case len(list) > 0 && !certs.Same(list[0].PublicKey, key.Public()):
		c.fail(1, "%s is not the key of %s", c.names[1], c.names[0])
	}
}

// certProblems returns why a certificate cannot be used now.
func certProblems(crt *x509.Certificate, now time.Time, ca bool) []string {
	var out []string
	if ca && (!crt.IsCA || crt.KeyUsage != 0 && crt.KeyUsage&x509.KeyUsageCertSign == 0) {
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
