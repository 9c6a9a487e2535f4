package expr

import (
	"errors"
	"strings"

	"kubekey/pkg/vault"
)

// vaultFilters encrypt and decrypt texts with a password that is given.
func vaultFilters() []filterSpec {
	return []filterSpec{
		{names: "vault", params: "secret! salt vault_id wrap_object vaultid", do: filterVault},
		{names: "unvault", params: "secret! vault_id vaultid", do: filterUnvault},
	}
}

// filterID is the ID in the header of what the filter encrypts.
const filterID = "filter_default"

func filterPassword(p *bound) (vault.Password, error) {
	secret, err := plainText(p.raw("secret", ""))
	if err != nil {
		return vault.Password{}, err
	}
	pass, err := vault.ExactPassword(p.str("vaultid", p.str("vault_id", filterID)), secret)
	return pass, errors.Join(err, p.err)
}

func filterVault(_ *Call, in any, p *bound) (any, error) {
	text, err := plainText(in)
	if err != nil {
		return nil, err
	}
	pass, err := filterPassword(p)
	if err != nil {
		return nil, err
	}
	var sealed []byte
	if salt := p.str("salt", ""); salt != "" {
		sealed, err = vault.EncryptWithSalt([]byte(text), pass, []byte(salt))
	} else {
		sealed, err = vault.Encrypt([]byte(text), pass)
	}
	return string(sealed), err
}

// filterUnvault leaves what is not encrypted as it is.
func filterUnvault(_ *Call, in any, p *bound) (any, error) {
	text, err := plainText(in)
	if err != nil || !vault.IsEncrypted([]byte(text)) {
		return text, err
	}
	pass, err := filterPassword(p)
	if err != nil {
		return nil, err
	}
	plain, err := vault.NewKeyring([]vault.Password{pass}, vault.Options{}).Decrypt([]byte(text))
	return string(plain), err
}

// lookupUnvault reads files, encrypted or not, as they are to the last blank.
func lookupUnvault(c *Call, terms []any, _ *bound) ([]any, error) {
	return mapTerms(terms, func(term string) (any, error) {
		text, err := readFound(c, strings.TrimSpace(term))
		return text, err
	})
}
