package net

import (
	"errors"
	"fmt"
	"mime"
	"mime/multipart"
	"net/textproto"
	"net/url"
	"path"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

// source is the content of src. curl reads a file on the host itself.
func (m *uri) source(c *module.Call) (text, kind string, err error) {
	kinds := map[string]string{"json": "application/json", "form-urlencoded": "application/x-www-form-urlencoded"}
	kind = kinds[m.Format]
	if m.Remote {
		return "", kind, nil
	}
	text, err = localText(c, m.Src)
	return text, kind, err
}

func localText(c *module.Call, name string) (string, error) {
	found, err := c.Find("files", name)
	if err != nil {
		return "", err
	}
	b, err := c.Files.ReadFile(found)
	return string(b), err
}

// form is the body as fields of a form, including files.
func (m *uri) form(c *module.Call) (text, kind string, err error) {
	fields, ok := m.Body.(*value.Dict)
	if !ok {
		return "", "", errors.New("body must be a dict of fields with body_format form-multipart")
	}
	var b strings.Builder
	w := multipart.NewWriter(&b)
	for k, v := range fields.All() {
		if err := addField(c, w, value.Str(k), v); err != nil {
			return "", "", fmt.Errorf("field %s: %w", value.Str(k), err)
		}
	}
	if err := w.Close(); err != nil {
		return "", "", err
	}
	return b.String(), w.FormDataContentType(), nil
}

func addField(c *module.Call, w *multipart.Writer, name string, v any) error {
	field, ok := v.(*value.Dict)
	if !ok {
		return w.WriteField(name, value.Str(v))
	}
	content, file, kind := field.String("content"), field.String("filename"), field.String("mime_type")
	disposition := map[string]string{"name": name}
	if file != "" {
		disposition["filename"] = path.Base(file)
		if !field.Has("content") {
			var err error
			if content, err = localText(c, file); err != nil {
				return err
			}
		}
		if kind == "" {
			kind = mime.TypeByExtension(path.Ext(file))
		}
		if kind == "" {
			kind = "application/octet-stream"
		}
	} else if !field.Has("content") {
		return errors.New("at least one of filename or content must be provided")
	}
	header := textproto.MIMEHeader{"Content-Disposition": {mime.FormatMediaType("form-data", disposition)}}
	if kind != "" {
		header.Set("Content-Type", kind)
	}
	part, err := w.CreatePart(header)
	if err == nil {
		_, err = part.Write([]byte(content))
	}
	return err
}

// nameOf is the file name in an address.
func nameOf(address string) string {
	if u, err := url.Parse(address); err == nil && path.Base(u.Path) != "/" && path.Base(u.Path) != "." {
		return path.Base(u.Path)
	}
	return "index.html"
}
