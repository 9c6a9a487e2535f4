// Package floors holds the test of the project's import order: a package
// imports only packages of lower floors. docs/architecture.md has the table.
package floors
