"""The facts about pods that several components need, each computed here and nowhere else.

`requests` adds up what a pod requests and limits, `quality` finds its QoS class, `tolerations` matches tolerations
with taints, `state` sums a pod up in one word, `validation` checks a pod
template. What a pod counts for in a ResourceQuota is in `api.quotas`.
"""
