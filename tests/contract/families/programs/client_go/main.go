// client-go, which kubectl, helm and the operators written in Go use; built-in kinds are asked for as protobuf where a question says so.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	authentication "k8s.io/api/authentication/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const limit = 20 * time.Second

var found = map[string]string{}

func feature(name string, question func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	found[name] = "yes"
	if err := question(ctx); err != nil {
		found[name] = fmt.Sprintf("%.400s", err.Error())
	}
}

func check(err error, holds bool, what any) error {
	if err != nil || holds {
		return err
	}
	return fmt.Errorf("unexpected: %v", what)
}

func config(name string) *core.ConfigMap {
	labels := map[string]string{"app": "family"}
	return &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: name, Labels: labels}, Data: map[string]string{"k": "v"}}
}

func main() {
	ns := os.Args[2]
	settings, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		panic(err)
	}
	settings.QPS, settings.Burst = 100, 200
	client := kubernetes.NewForConfigOrDie(settings)
	untyped := dynamic.NewForConfigOrDie(settings)
	configs := client.CoreV1().ConfigMaps(ns)
	family := meta.ListOptions{LabelSelector: "app=family"}

	feature("create and read", func(ctx context.Context) error {
		for _, name := range []string{"c0", "c1", "c2"} {
			if _, err := configs.Create(ctx, config(name), meta.CreateOptions{}); err != nil {
				return err
			}
		}
		read, err := configs.Get(ctx, "c0", meta.GetOptions{})
		return check(err, err == nil && read.Data["k"] == "v", read)
	})
	feature("list by label", func(ctx context.Context) error {
		list, err := configs.List(ctx, family)
		return check(err, err == nil && len(list.Items) == 3, list)
	})
	feature("pages", func(ctx context.Context) error {
		names, token := map[string]bool{}, ""
		for {
			page, err := configs.List(ctx, meta.ListOptions{Limit: 2, Continue: token})
			if err != nil {
				return err
			}
			for _, item := range page.Items {
				names[item.Name] = true
			}
			if token = page.Continue; token == "" {
				return check(nil, names["c0"] && names["c1"] && names["c2"], names)
			}
		}
	})
	patch := func(name string, kind types.PatchType, body string) {
		feature(name, func(ctx context.Context) error {
			made, err := configs.Patch(ctx, "c0", kind, []byte(body), meta.PatchOptions{})
			return check(err, err == nil && made.Data["patched"] == name, made)
		})
	}
	patch("merge patch", types.MergePatchType, `{"data":{"patched":"merge patch"}}`)
	patch("JSON patch", types.JSONPatchType, `[{"op":"replace","path":"/data/patched","value":"JSON patch"}]`)
	patch("strategic merge patch", types.StrategicMergePatchType, `{"data":{"patched":"strategic merge patch"}}`)
	feature("server-side apply", func(ctx context.Context) error {
		wanted := applycore.ConfigMap("applied", ns).WithLabels(map[string]string{"app": "family"}).WithData(map[string]string{"a": "b"})
		made, err := configs.Apply(ctx, wanted, meta.ApplyOptions{FieldManager: "family"})
		return check(err, err == nil && made.ManagedFields[0].Operation == meta.ManagedFieldsOperationApply, made)
	})
	feature("watch", func(ctx context.Context) error {
		list, err := configs.List(ctx, meta.ListOptions{})
		if err != nil {
			return err
		}
		watching, err := configs.Watch(ctx, meta.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			return err
		}
		defer watching.Stop()
		if _, err = configs.Create(ctx, config("watched"), meta.CreateOptions{}); err != nil {
			return err
		}
		event := <-watching.ResultChan()
		seen, isConfig := event.Object.(*core.ConfigMap)
		return check(nil, isConfig && event.Type == "ADDED" && seen.Name == "watched", event)
	})
	feature("informer", func(ctx context.Context) error {
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(ns))
		informer := factory.Core().V1().ConfigMaps().Informer()
		factory.Start(ctx.Done())
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return fmt.Errorf("the informer has not synced")
		}
		_, exists, err := informer.GetStore().GetByKey(ns + "/c0")
		return check(err, exists, "c0 is not in the informer's store")
	})
	feature("protobuf", func(ctx context.Context) error {
		binary := *settings
		binary.ContentType = "application/vnd.kubernetes.protobuf"
		others := kubernetes.NewForConfigOrDie(&binary).CoreV1().ConfigMaps(ns)
		if _, err := others.Create(ctx, config("binary"), meta.CreateOptions{}); err != nil {
			return err
		}
		watching, err := others.Watch(ctx, meta.ListOptions{FieldSelector: "metadata.name=binary"})
		if err != nil {
			return err
		}
		defer watching.Stop()
		event := <-watching.ResultChan()
		seen, isConfig := event.Object.(*core.ConfigMap)
		return check(nil, isConfig && seen.Data["k"] == "v", event)
	})
	feature("conflicts", func(ctx context.Context) error {
		stale, err := configs.Get(ctx, "c1", meta.GetOptions{})
		if err == nil {
			_, err = configs.Patch(ctx, "c1", types.MergePatchType, []byte(`{"data":{"x":"y"}}`), meta.PatchOptions{})
		}
		if err != nil {
			return err
		}
		_, err = configs.Update(ctx, stale, meta.UpdateOptions{})
		return check(nil, errors.IsConflict(err), err)
	})
	feature("what is missing", func(ctx context.Context) error {
		_, err := configs.Get(ctx, "missing", meta.GetOptions{})
		return check(nil, errors.IsNotFound(err), err)
	})
	feature("custom objects", func(ctx context.Context) error {
		things := untyped.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}).Namespace(ns)
		thing := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "t"}, "spec": map[string]any{"size": int64(1)},
		}}
		if _, err := things.Create(ctx, thing, meta.CreateOptions{}); err != nil {
			return err
		}
		made, err := things.Patch(ctx, "t", types.MergePatchType, []byte(`{"spec":{"size":2}}`), meta.PatchOptions{})
		if err != nil {
			return err
		}
		size, _, err := unstructured.NestedInt64(made.Object, "spec", "size")
		return check(err, size == 2, made)
	})
	feature("discovery", func(ctx context.Context) error {
		_, lists, err := client.Discovery().ServerGroupsAndResources()
		if err != nil {
			return err
		}
		for _, list := range lists {
			for _, resource := range list.APIResources {
				if resource.Kind == "Thing" {
					return nil
				}
			}
		}
		return fmt.Errorf("no Thing")
	})
	feature("OpenAPI", func(ctx context.Context) error {
		document, err := client.Discovery().OpenAPISchema()
		if err != nil {
			return err
		}
		paths, err := client.Discovery().OpenAPIV3().Paths()
		if err != nil {
			return err
		}
		raw, err := paths["api/v1"].Schema("application/json")
		return check(err, len(document.Paths.Path) > 10 && len(raw) > 1000, "the documents are short")
	})
	feature("tokens", func(ctx context.Context) error {
		accounts, seconds := client.CoreV1().ServiceAccounts(ns), int64(600)
		if _, err := accounts.Create(ctx, &core.ServiceAccount{ObjectMeta: meta.ObjectMeta{Name: "family"}}, meta.CreateOptions{}); err != nil {
			return err
		}
		request := &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{ExpirationSeconds: &seconds}}
		made, err := accounts.CreateToken(ctx, "family", request, meta.CreateOptions{})
		if err != nil {
			return err
		}
		review := &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: made.Status.Token}}
		reviewed, err := client.AuthenticationV1().TokenReviews().Create(ctx, review, meta.CreateOptions{})
		return check(err, err == nil && reviewed.Status.User.Username == "system:serviceaccount:"+ns+":family", reviewed)
	})
	feature("leases", func(ctx context.Context) error {
		holder := "me"
		leases := client.CoordinationV1().Leases(ns)
		lease := &coordination.Lease{ObjectMeta: meta.ObjectMeta{Name: "family"}, Spec: coordination.LeaseSpec{HolderIdentity: &holder}}
		made, err := leases.Create(ctx, lease, meta.CreateOptions{})
		return check(err, err == nil && *made.Spec.HolderIdentity == holder, made)
	})
	feature("leader election", func(ctx context.Context) error {
		lock := &resourcelock.LeaseLock{
			LeaseMeta: meta.ObjectMeta{Name: "election", Namespace: ns}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: "me"},
		}
		leading, stop := context.WithCancel(ctx)
		won := false
		leaderelection.RunOrDie(leading, leaderelection.LeaderElectionConfig{
			Lock: lock, ReleaseOnCancel: true, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: time.Second,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { won = true; stop() }, OnStoppedLeading: func() {},
			},
		})
		stop()
		return check(nil, won, "not elected")
	})
	feature("events", func(ctx context.Context) error {
		about := core.ObjectReference{Kind: "ConfigMap", Namespace: ns, Name: "c0"}
		event := &events.Event{
			ObjectMeta: meta.ObjectMeta{Name: "family"}, EventTime: meta.NewMicroTime(time.Now()), ReportingController: "example.com/family",
			ReportingInstance: "one", Action: "Asking", Reason: "Asked", Regarding: about, Type: "Normal", Note: "hello",
		}
		if _, err := client.EventsV1().Events(ns).Create(ctx, event, meta.CreateOptions{}); err != nil {
			return err
		}
		list, err := client.CoreV1().Events(ns).List(ctx, meta.ListOptions{FieldSelector: "involvedObject.name=c0"})
		return check(err, err == nil && len(list.Items) == 1 && list.Items[0].Message == "hello", list)
	})
	feature("delete a collection", func(ctx context.Context) error {
		if err := configs.DeleteCollection(ctx, meta.DeleteOptions{}, family); err != nil {
			return err
		}
		list, err := configs.List(ctx, family)
		return check(err, err == nil && len(list.Items) == 0, list)
	})
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		panic(err)
	}
}
