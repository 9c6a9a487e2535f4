package main

import (
	"strings"

	"kubekey/pkg/settings"
)

// settingsPage returns the page with the table of settings.
func settingsPage(table []settings.Setting) string {
	d := newDocument("Settings")
	d.text("What may be set for kk as a whole. The first place that sets something wins: the flag, `KK_NAME` in the " +
		"environment, " +
		"the variables of Ansible in the order of the table, kk.yaml, ansible.cfg, the default. `kk config dump` shows " +
		"what holds, and why. " +
		"[Settings](../guides/settings.md) tells where the files are found.")
	var rows [][]string
	for _, s := range table {
		rows = append(rows, []string{quoted(s.Name), settingType(s), code(s.Default), code(flagOf(s)), codes(s.Env),
			codes(keysOf(s)), sentence(plain(s.Doc))})
	}
	d.table([]string{"name", "type", "default", "flag", "environment, beside KK_NAME", "ansible.cfg", "meaning"}, rows)
	return d.String()
}

func settingType(s settings.Setting) string {
	if len(s.Choices) > 0 {
		return codes(s.Choices)
	}
	return s.Type
}

func flagOf(s settings.Setting) string {
	if s.Flag == "" {
		return ""
	}
	return "--" + s.Flag
}

func keysOf(s settings.Setting) []string {
	var keys []string
	for _, k := range s.INI {
		keys = append(keys, k.String())
	}
	return keys
}

func codes(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = code(s)
	}
	return strings.Join(out, ", ")
}

// code puts a text in code quotes. "" gives "".
func code(s string) string {
	if s == "" {
		return ""
	}
	return quoted(s)
}
