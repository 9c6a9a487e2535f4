package kube

import (
	"fmt"
	"strings"

	"kubekey/pkg/value"
)

// Condition is a required condition in the status of an object.
type Condition struct {
	Type   string `kk:"type,required" doc:"type of the condition, such as Available"`
	Status string `kk:"status" default:"True" choices:"True,False,Unknown" doc:"required status of the condition"`
	Reason string `kk:"reason" doc:"required reason of the condition. Default: any"`
}

// state is how far an object is: ready, on its way (why says what is missing),
// or lost (it will not get ready).
type state struct {
	ready, lost bool
	why         string
}

func done() state                              { return state{ready: true} }
func pending(format string, args ...any) state { return state{why: fmt.Sprintf(format, args...)} }

// condition finds a condition of the object's status.
func (o object) condition(kind string) (object, bool) {
	list, _ := o.at("status", "conditions").([]any)
	for _, v := range list {
		if d, ok := v.(*value.Dict); ok && d.String("type") == kind {
			return object{d}, true
		}
	}
	return object{}, false
}

// said is the message of a condition.
func (o object) said() string {
	parts := []string{o.text("type") + " is " + o.text("status")}
	for _, key := range []string{"reason", "message"} {
		if s := o.text(key); s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

// met reports whether the object has a condition.
func (want Condition) met(o object) state {
	c, ok := o.condition(want.Type)
	switch {
	case !ok:
		return pending("it has no condition %s", want.Type)
	case c.text("status") != want.Status, want.Reason != "" && c.text("reason") != want.Reason:
		return pending("condition %s", c.said())
	}
	return done()
}

// readiness reports whether an object is ready. An object of a kind without readiness is
// ready when it exists.
func readiness(o object) state {
	switch o.kind() {
	case "Deployment", "DaemonSet", "StatefulSet":
		if o.number("status", "observedGeneration") < o.number("metadata", "generation") {
			return pending("its controller has not seen the change yet")
		}
	}
	switch o.kind() {
	case "Deployment":
		return deploymentReady(o)
	case "DaemonSet":
		return daemonSetReady(o)
	case "StatefulSet":
		return statefulSetReady(o)
	case "Job":
		return either(o, "Complete", "Failed")
	case "CustomResourceDefinition":
		return Condition{Type: "Established", Status: "True"}.met(o)
	case "APIService":
		return Condition{Type: "Available", Status: "True"}.met(o)
	case "Pod":
		return podReady(o)
	}
	return done()
}

// replicas is the desired number of replicas; 1 if it is not set.
func replicas(o object) int {
	if n, ok := o.at("spec", "replicas").(int); ok {
		return n
	}
	return 1
}

func deploymentReady(o object) state {
	if c, ok := o.condition("Progressing"); ok && c.text("reason") == "ProgressDeadlineExceeded" {
		return state{lost: true, why: "condition " + c.said()}
	}
	want, updated := replicas(o), o.number("status", "updatedReplicas")
	switch available := o.number("status", "availableReplicas"); {
	case updated < want:
		return pending("%d of %d replicas are updated%s", updated, want, because(o))
	case o.number("status", "replicas") > updated:
		return pending("%d old replicas are not gone yet", o.number("status", "replicas")-updated)
	case available < updated:
		return pending("%d of %d replicas are available%s", available, updated, because(o))
	}
	return done()
}

// because is the message of a deployment about a replica that it cannot create.
func because(o object) string {
	for _, kind := range []string{"ReplicaFailure", "Available"} {
		if c, ok := o.condition(kind); ok && (kind == "ReplicaFailure") == (c.text("status") == "True") {
			return " (condition " + c.said() + ")"
		}
	}
	return ""
}

func daemonSetReady(o object) state {
	want := o.number("status", "desiredNumberScheduled")
	updated, available := o.number("status", "updatedNumberScheduled"), o.number("status", "numberAvailable")
	switch {
	case updated < want && o.text("spec", "updateStrategy", "type") != "OnDelete":
		return pending("%d of %d pods are updated", updated, want)
	case available < want:
		return pending("%d of %d pods are available", available, want)
	}
	return done()
}

func statefulSetReady(o object) state {
	want := replicas(o)
	first := o.number("spec", "updateStrategy", "rollingUpdate", "partition")
	ready, updated := o.number("status", "readyReplicas"), o.number("status", "updatedReplicas")
	switch {
	case ready < want:
		return pending("%d of %d replicas are ready", ready, want)
	case updated < want-first && o.text("spec", "updateStrategy", "type") != "OnDelete":
		return pending("%d of %d replicas are updated", updated, want-first)
	}
	return done()
}

func podReady(o object) state {
	switch o.text("status", "phase") {
	case "Succeeded":
		return done()
	case "Failed":
		return state{lost: true, why: "it failed: " + o.text("status", "reason") + " " + o.text("status", "message")}
	}
	return Condition{Type: "Ready", Status: "True"}.met(o)
}

// either waits for one condition, and gives up when it sees the other.
func either(o object, good, bad string) state {
	if c, ok := o.condition(bad); ok && c.text("status") == "True" {
		return state{lost: true, why: "condition " + c.said()}
	}
	return Condition{Type: good, Status: "True"}.met(o)
}
