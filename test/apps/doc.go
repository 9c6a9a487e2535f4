// Package apps tests what the roles hand to helm and kubectl: the values of charts and
// the manifests of networks, DNS, storage and metrics, for every plugin and family of
// addresses. They are rendered by kk itself; where the charts, helm, etcd and the API
// server are at hand, the charts take the values and the API server takes the manifests.
package apps
