// fabric8's Kubernetes client, which Spark and Flink use; its watches are WebSockets.
import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.ConfigMapList;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.GenericKubernetesResourceBuilder;
import io.fabric8.kubernetes.api.model.ListOptionsBuilder;
import io.fabric8.kubernetes.api.model.authentication.TokenRequestBuilder;
import io.fabric8.kubernetes.api.model.coordination.v1.LeaseBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.Watch;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.dsl.base.ResourceDefinitionContext;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

public class Fabric8 {
  interface Question {
    void ask() throws Exception;
  }

  static final Map<String, String> found = new LinkedHashMap<>();

  static void feature(String name, Question question) {
    try {
      question.ask();
      found.put(name, "yes");
    } catch (Throwable error) {
      String text = error.getClass().getSimpleName() + ": " + error.getMessage();
      found.put(name, text.substring(0, Math.min(400, text.length())));
    }
  }

  static void check(boolean holds, String what) {
    if (!holds) throw new IllegalStateException(what);
  }

  static ConfigMap config(String name) {
    return new ConfigMapBuilder().withNewMetadata().withName(name).addToLabels("app", "family").endMetadata()
        .addToData("k", "v").build();
  }

  public static void main(String[] arguments) throws Exception {
    String ns = arguments[1];
    Config settings = Config.fromKubeconfig(Files.readString(Path.of(arguments[0])));
    settings.setRequestRetryBackoffLimit(0);
    try (KubernetesClient client = new KubernetesClientBuilder().withConfig(settings).build()) {
      var configs = client.configMaps().inNamespace(ns);
      feature("create and read", () -> {
        for (int n = 0; n < 3; n++) configs.resource(config("c" + n)).create();
        check(configs.withName("c0").get().getData().get("k").equals("v"), "the data is another");
      });
      feature("list by label", () ->
          check(configs.withLabel("app", "family").list().getItems().size() == 3, "not three"));
      feature("pages", () -> {
        Set<String> names = new HashSet<>();
        String token = null;
        do {
          ConfigMapList page = configs.list(new ListOptionsBuilder().withLimit(2L).withContinue(token).build());
          page.getItems().forEach(item -> names.add(item.getMetadata().getName()));
          token = page.getMetadata().getContinue();
        } while (token != null && !token.isEmpty());
        check(names.containsAll(List.of("c0", "c1", "c2")), names.toString());
      });
      feature("merge patch", () -> check(configs.withName("c0")
          .patch(PatchContext.of(PatchType.JSON_MERGE), "{\"data\":{\"merge\":\"yes\"}}")
          .getData().get("merge").equals("yes"), "not patched"));
      feature("JSON patch", () -> check(configs.withName("c0")
          .patch(PatchContext.of(PatchType.JSON), "[{\"op\":\"replace\",\"path\":\"/data/json\",\"value\":\"yes\"}]")
          .getData().get("json").equals("yes"), "not patched"));
      feature("strategic merge patch", () -> check(configs.withName("c0")
          .patch(PatchContext.of(PatchType.STRATEGIC_MERGE), "{\"data\":{\"strategic\":\"yes\"}}")
          .getData().get("strategic").equals("yes"), "not patched"));
      feature("server-side apply", () -> check(configs.resource(config("applied")).serverSideApply()
          .getMetadata().getManagedFields().get(0).getOperation().equals("Apply"), "not applied"));
      feature("watch", () -> {
        String since = configs.list().getMetadata().getResourceVersion();
        CompletableFuture<String> first = new CompletableFuture<>();
        try (Watch watch = configs.watch(new ListOptionsBuilder().withResourceVersion(since).build(),
            new Watcher<ConfigMap>() {
              public void eventReceived(Action action, ConfigMap seen) {
                first.complete(action + " " + seen.getMetadata().getName());
              }

              public void onClose(WatcherException error) {
                first.completeExceptionally(error);
              }
            })) {
          configs.resource(config("watched")).create();
          check(first.get(10, TimeUnit.SECONDS).equals("ADDED watched"), first.toString());
        }
      });
      feature("informer", () -> {
        CompletableFuture<String> first = new CompletableFuture<>();
        try (SharedIndexInformer<ConfigMap> informer = configs.withName("c0").inform(new ResourceEventHandler<>() {
          public void onAdd(ConfigMap seen) {
            first.complete(seen.getMetadata().getName());
          }

          public void onUpdate(ConfigMap before, ConfigMap after) {}

          public void onDelete(ConfigMap last, boolean isUnknown) {}
        })) {
          check(first.get(10, TimeUnit.SECONDS).equals("c0") && informer.hasSynced(), first.toString());
        }
      });
      feature("conflicts", () -> {
        ConfigMap stale = configs.withName("c1").get();
        configs.withName("c1").patch(PatchContext.of(PatchType.JSON_MERGE), "{\"data\":{\"x\":\"y\"}}");
        int code = 200;
        try {
          configs.resource(stale).lockResourceVersion(stale.getMetadata().getResourceVersion()).update();
        } catch (KubernetesClientException error) {
          code = error.getCode();
        }
        check(code == 409, "" + code);
      });
      feature("what is missing", () -> check(configs.withName("missing").get() == null, "something was found"));
      feature("custom objects", () -> {
        var context = new ResourceDefinitionContext.Builder().withGroup("example.com").withVersion("v1")
            .withKind("Thing").withPlural("things").withNamespaced(true).build();
        var things = client.genericKubernetesResources(context).inNamespace(ns);
        things.resource(new GenericKubernetesResourceBuilder().withApiVersion("example.com/v1").withKind("Thing")
            .withNewMetadata().withName("t").endMetadata().addToAdditionalProperties("spec", Map.of("size", 1))
            .build()).create();
        GenericKubernetesResource made = things.withName("t")
            .patch(PatchContext.of(PatchType.JSON_MERGE), "{\"spec\":{\"size\":2}}");
        check(made.get("spec", "size").equals(2), "not patched");
      });
      feature("discovery", () -> check(client.getApiResources("example.com/v1").getResources().stream()
          .anyMatch(each -> each.getKind().equals("Thing")), "no Thing"));
      feature("tokens", () -> {
        client.serviceAccounts().inNamespace(ns).resource(new io.fabric8.kubernetes.api.model.ServiceAccountBuilder()
            .withNewMetadata().withName("family").endMetadata().build()).create();
        var request = new TokenRequestBuilder().withNewSpec().withExpirationSeconds(600L).endSpec().build();
        var made = client.serviceAccounts().inNamespace(ns).withName("family").tokenRequest(request);
        check(!made.getStatus().getToken().isEmpty(), "no token");
      });
      feature("leases", () -> {
        var leases = client.leases().inNamespace(ns);
        leases.resource(new LeaseBuilder().withNewMetadata().withName("family").endMetadata()
            .withNewSpec().withHolderIdentity("me").endSpec().build()).create();
        check(leases.withName("family").get().getSpec().getHolderIdentity().equals("me"), "another holder");
      });
      feature("delete a collection", () -> {
        configs.withLabel("app", "family").delete();
        check(configs.withLabel("app", "family").list().getItems().isEmpty(), "some are left");
      });
    }
    System.out.println(Serialization.asJson(found));
  }
}
