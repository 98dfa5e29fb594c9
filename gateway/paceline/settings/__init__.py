"""Configuration: one YAML file and the environment → validated, frozen `Settings`.

The only part of Paceline that reads YAML. Everything wrong with a file is said at once, each with
its line, before a port is opened.
"""

from paceline.settings.discovered import (
    DiscoveredWorker,
    discovered_settings,
    worker_address,
)
from paceline.settings.load import load, parse
from paceline.settings.routing_tests import decision_when_idle, failed_tests
from paceline.settings.values import (
    Admin,
    ApiKey,
    Auth,
    Learning,
    Limits,
    Listen,
    Log,
    Mode,
    ModelSettings,
    PoolSettings,
    RoutingTest,
    Settings,
    Timeouts,
    WorkerSettings,
)

__all__ = [
    "Admin",
    "ApiKey",
    "Auth",
    "DiscoveredWorker",
    "Learning",
    "Limits",
    "Listen",
    "Log",
    "Mode",
    "ModelSettings",
    "PoolSettings",
    "RoutingTest",
    "Settings",
    "Timeouts",
    "WorkerSettings",
    "decision_when_idle",
    "discovered_settings",
    "failed_tests",
    "load",
    "parse",
    "worker_address",
]
