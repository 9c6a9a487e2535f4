package filters

import (
	"errors"

	"kubekey/pkg/expr"
	"kubekey/pkg/vault"
)

// vaultFilters encrypt and decrypt texts with a given password.
func vaultFilters() []expr.Filter {
	return []expr.Filter{
		{Names: "vault", Params: "secret! salt vault_id wrap_object vaultid", Do: filterVault},
		{Names: "unvault", Params: "secret! vault_id vaultid", Do: filterUnvault},
	}
}

// filterID is the vault ID in the header of texts that the filter encrypts.
const filterID = "filter_default"

func filterPassword(p *expr.Bound) (vault.Password, error) {
	secret, err := expr.Text(p.Raw("secret", ""))
	if err != nil {
		return vault.Password{}, err
	}
	pass, err := vault.ExactPassword(p.Str("vaultid", p.Str("vault_id", filterID)), secret)
	return pass, errors.Join(err, p.Err)
}

func filterVault(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	text, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	pass, err := filterPassword(p)
	if err != nil {
		return nil, err
	}
	var sealed []byte
	if salt := p.Str("salt", ""); salt != "" {
		sealed, err = vault.EncryptWithSalt([]byte(text), pass, []byte(salt))
	} else {
		sealed, err = vault.Encrypt([]byte(text), pass)
	}
	return string(sealed), err
}

// filterUnvault returns a text that is not encrypted unchanged.
func filterUnvault(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	text, err := expr.Text(in)
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
