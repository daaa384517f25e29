"""Files for Prometheus and Grafana: rules, dashboard, and the scrape configuration of a data directory."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from volcano.install.monitoring import dashboard_text, rule_groups, scrape_configuration
from volcano.install.yaml_text import as_yaml
from volcano.machinery.certificates import Authority, write_private
from volcano.machinery.clock import Clock
from volcano.machinery.kubeconfig import load_endpoint

RULES: Final = "volcano-rules.yaml"
DASHBOARD: Final = "grafana-dashboard.json"
CONFIGURATION: Final = "prometheus.yaml"
READER: Final = "volcano-monitoring"
MONITORING: Final = ("system:monitoring",)


def write_shared(folder: Path) -> None:
    """What deploy/monitoring has: rules, dashboard, and a configuration that reads scheduler and controllers."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RULES).write_text(as_yaml([rule_groups()]))
    (folder / DASHBOARD).write_text(dashboard_text())
    (folder / CONFIGURATION).write_text(as_yaml([scrape_configuration(rules=RULES)]))


def write_for(data: Path, folder: Path, clock: Clock, **addresses: str) -> Path:
    """The same for the system of a data directory, its API server included; returns the configuration's path."""
    write_shared(folder)
    authority = Authority(data / "pki", clock.now())
    pair = authority.issue(READER, MONITORING, clock.now())
    certificate, key = folder / "monitoring.crt", folder / "monitoring.key"
    write_private(certificate, pair.certificate)
    write_private(key, pair.key)
    address = urlsplit(load_endpoint(data / "kubeconfig").server).netloc
    configuration = scrape_configuration(
        rules=str((folder / RULES).resolve()),
        api_server=address,
        authority=str(authority.certificate_path.resolve()),
        certificate=str(certificate.resolve()),
        key=str(key.resolve()),
        **addresses,
    )
    path = folder / CONFIGURATION
    path.write_text(as_yaml([configuration]))
    return path
