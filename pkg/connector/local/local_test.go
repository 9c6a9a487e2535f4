package local_test

import (
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/connector/local"
)

func TestContract(t *testing.T) {
	connectortest.Contract(t, func(*testing.T) connector.Connector { return local.New() })
}
