package certs

import (
	"crypto/rsa"
	"crypto/x509"
	"fmt"
)

// A host can supply any key, and the time to verify with one grows with the square of its size:
// keys are rejected by size before anything is computed with them.
const (
	mostBits    = 16384   // of an RSA key, as in OpenSSL
	mostPrivate = 1 << 16 // bytes of a private key: one of mostBits has less than 10000
)

func checkSize(public any) error {
	if k, ok := public.(*rsa.PublicKey); ok && k.N.BitLen() > mostBits {
		return fmt.Errorf("its RSA key has %d bits: at most %d are supported", k.N.BitLen(), mostBits)
	}
	return nil
}

// ReadCert is a certificate in DER.
func ReadCert(der []byte) (*x509.Certificate, error) {
	crt, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return crt, checkSize(crt.PublicKey)
}

// ReadRequest is a request in DER; its signature was not checked.
func ReadRequest(der []byte) (*x509.CertificateRequest, error) {
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, err
	}
	return csr, checkSize(csr.PublicKey)
}

// readPKCS8 protects the parser from long keys: it tests whether their factors are prime.
func readPKCS8(der []byte) (any, error) {
	if err := CheckPrivate(der); err != nil {
		return nil, err
	}
	return x509.ParsePKCS8PrivateKey(der)
}

// CheckPrivate rejects a private key that is longer than any supported one.
func CheckPrivate(text []byte) error {
	if len(text) > mostPrivate {
		return fmt.Errorf("it has %d bytes: a private key has at most %d", len(text), mostPrivate)
	}
	return nil
}
