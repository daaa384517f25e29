"""The addresses and names that services have: the range of cluster addresses, and the domain of cluster names."""

from __future__ import annotations

import ipaddress
from typing import Final

SERVICE_RANGE: Final = ipaddress.IPv4Network("10.96.0.0/12")
API_SERVER_ADDRESS: Final = str(SERVICE_RANGE[1])
API_SERVER_PORT: Final = 443
DNS_ADDRESS: Final = str(SERVICE_RANGE[10])
CLUSTER_DOMAIN: Final = "cluster.local"
SERVICE_DOMAIN: Final = f"svc.{CLUSTER_DOMAIN}"
SERVICE_NAME_LABEL: Final = "kubernetes.io/service-name"
"""The label by which an EndpointSlice names its Service."""
HEADLESS: Final = "None"
"""The clusterIP of a service without an address of its own."""
