"""Good objects of many kinds by the path that they are sent to; what fuzzes changes places of them."""

from __future__ import annotations

from tests.contract.bodies import a_crd, a_pod

FULL_POD = a_pod(
    "fuzz",
    initContainers=[{"name": "i", "image": "x", "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}],
    volumes=[{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "c"}}],
    tolerations=[{"key": "a", "operator": "Exists"}],
    affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]}}},
    topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"a": "b"}}}],
    securityContext={"runAsUser": 1},
)  # fmt: skip
FULL_POD["metadata"] |= {
    "annotations": {"a": "b"},
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u"}],
    "finalizers": [],
}
FULL_POD["spec"]["containers"][0] |= {
    "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
    "ports": [{"containerPort": 80, "name": "http"}],
    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
}
SEEDS = {
    "/api/v1/namespaces/default/pods": FULL_POD,
    "/api/v1/namespaces/default/services": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"type": "NodePort", "selector": {"a": "b"}, "ports": [{"name": "h", "port": 80, "targetPort": "http"}]}},
    "/api/v1/nodes": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "fz"}, "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}, "status": {"capacity": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]}},
    "/api/v1/namespaces/default/resourcequotas": {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "1000", "count/jobs.batch": "5"}, "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}]}}},
    "/api/v1/namespaces/default/limitranges": {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "100"}, "default": {"cpu": "1"}}]}},
    "/apis/apps/v1/namespaces/default/deployments": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}}},
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets": {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}}},
    "/apis/rbac.authorization.k8s.io/v1/clusterroles": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}], "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}},
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "rb"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "someone"}]},
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": a_crd("things", "fuzz.example.com", additionalPrinterColumns=[{"name": "A", "type": "string", "jsonPath": ".spec.size"}], subresources={"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}),
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations": {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "w"}, "webhooks": [{"name": "a.b.c", "rules": [{"operations": ["CREATE"], "apiGroups": ["none"], "apiVersions": ["*"], "resources": ["*"]}], "clientConfig": {"url": "https://127.0.0.1:1/"}, "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore"}]},
    "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "vj"}, "spec": {"minAvailable": 1, "tasks": [{"name": "w", "replicas": 1, "policies": [{"event": "PodFailed", "action": "RestartJob"}], "template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}]}},
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
    "/apis/authentication.k8s.io/v1/tokenreviews": {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "a.b.c"}},
    "/api/v1/namespaces/default/pods/p/binding": {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}},
    "/api/v1/namespaces/default/pods/p/eviction": {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 1}},
    "/api/v1/namespaces/default/serviceaccounts/default/token": {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}},
}  # fmt: skip

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
ONE_RUN = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}
VOLCANO_JOB = {"minAvailable": 1, "tasks": [{"name": "w", "replicas": 1, "template": ONE_RUN}]}
FURTHER_SEEDS = {
    "/api/v1/namespaces/default/configmaps": {"metadata": {"name": "c"}, "data": {"a": "b"}},
    "/api/v1/namespaces/default/secrets": {"metadata": {"name": "s"}, "type": "Opaque", "stringData": {"a": "b"}},
    "/api/v1/namespaces/default/serviceaccounts": {"metadata": {"name": "sa"}},
    "/api/v1/namespaces/default/endpoints": {"metadata": {"name": "e"}, "subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]},
    "/api/v1/namespaces/default/events": {"metadata": {"name": "ev", "namespace": "fuzz"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "fuzz"}, "reason": "R", "message": "m", "type": "Normal"},
    "/api/v1/namespaces/default/persistentvolumeclaims": {"metadata": {"name": "pvc"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    "/api/v1/namespaces/default/podtemplates": {"metadata": {"name": "pt"}, "template": TEMPLATE},
    "/api/v1/namespaces/default/replicationcontrollers": {"metadata": {"name": "rc"}, "spec": {"replicas": 0, "selector": {"a": "b"}, "template": TEMPLATE}},
    "/api/v1/persistentvolumes": {"metadata": {"name": "pv"}, "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp/none"}}},
    "/apis/apps/v1/namespaces/default/statefulsets": {"metadata": {"name": "st"}, "spec": {"replicas": 1, "serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}},
    "/apis/apps/v1/namespaces/default/replicasets": {"metadata": {"name": "rs"}, "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}},
    "/apis/apps/v1/namespaces/default/daemonsets": {"metadata": {"name": "ds"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}},
    "/apis/batch/v1/namespaces/default/jobs": {"metadata": {"name": "j"}, "spec": {"parallelism": 1, "completions": 2, "template": ONE_RUN}},
    "/apis/batch/v1/namespaces/default/cronjobs": {"metadata": {"name": "cj"}, "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": ONE_RUN}}}},
    "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers": {"metadata": {"name": "h"}, "spec": {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}},
    "/apis/coordination.k8s.io/v1/namespaces/default/leases": {"metadata": {"name": "le"}, "spec": {"holderIdentity": "x", "leaseDurationSeconds": 10}},
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices": {"metadata": {"name": "es"}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 80}]},
    "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies": {"metadata": {"name": "np"}, "spec": {"podSelector": {}}},
    "/apis/networking.k8s.io/v1/namespaces/default/ingresses": {"metadata": {"name": "in"}, "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles": {"metadata": {"name": "ro"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]},
    "/apis/resource.k8s.io/v1/deviceclasses": {"metadata": {"name": "dc.example.com"}, "spec": {"selectors": [{"cel": {"expression": "device.driver == 'x.example.com'"}}]}},
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims": {"metadata": {"name": "rcl"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "dc.example.com"}}]}}},
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates": {"metadata": {"name": "rct"}, "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "dc.example.com"}}]}}}},
    "/apis/resource.k8s.io/v1/resourceslices": {"metadata": {"name": "rsl"}, "spec": {"driver": "x.example.com", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "d0"}]}},
    "/apis/scheduling.k8s.io/v1/priorityclasses": {"metadata": {"name": "fuzz-priority"}, "value": 10},
    "/apis/storage.k8s.io/v1/storageclasses": {"metadata": {"name": "fuzz-storage"}, "provisioner": "example.com/x"},
    "/apis/batch.volcano.sh/v1alpha1/namespaces/default/cronjobs": {"metadata": {"name": "vcj"}, "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": VOLCANO_JOB}}},
    "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands": {"metadata": {"name": "cmd"}, "action": "AbortJob", "target": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "vj", "uid": "u", "controller": True}},
    "/apis/flow.volcano.sh/v1alpha1/namespaces/default/jobtemplates": {"metadata": {"name": "jt"}, "spec": VOLCANO_JOB},
    "/apis/flow.volcano.sh/v1alpha1/namespaces/default/jobflows": {"metadata": {"name": "jf"}, "spec": {"jobRetainPolicy": "delete", "flows": [{"name": "jt"}]}},
    "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups": {"metadata": {"name": "pg"}, "spec": {"minMember": 1, "queue": "default", "minResources": {"cpu": "1"}}},
    "/apis/scheduling.volcano.sh/v1beta1/queues": {"metadata": {"name": "fuzz-queue"}, "spec": {"weight": 2, "capability": {"cpu": "4"}, "reclaimable": True}},
    "/apis/topology.volcano.sh/v1alpha1/hypernodes": {"metadata": {"name": "fuzz-hypernode"}, "spec": {"tier": 1, "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "^node-.*$"}}}]}},
    "/apis/nodeinfo.volcano.sh/v1alpha1/numatopologies": {"metadata": {"name": "fuzz-numa"}, "spec": {"policies": {"TopologyManagerPolicy": "none"}}},
}  # fmt: skip
"""Of further kinds, without what the server fills in."""
