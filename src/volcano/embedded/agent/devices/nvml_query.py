"""Prints NVIDIA's cards by NVML in the form of nvidia-smi's query; a program of its own (`python -m`).

It needs the package nvidia-ml-py, and runs only where nvidia-smi is missing.
"""

from __future__ import annotations

import importlib
from typing import Any

MEBIBYTE = 2**20
NO_DRIVER = ("NVMLError_LibraryNotFound", "NVMLError_DriverNotLoaded")
"""The package is installed and the machine has no card of NVIDIA: no fault."""


def main() -> None:
    nvml: Any = importlib.import_module("pynvml")
    try:
        nvml.nvmlInit()
    except Exception as error:
        if type(error).__name__ in NO_DRIVER:
            return
        raise
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        memory = int(nvml.nvmlDeviceGetMemoryInfo(handle).total) // MEBIBYTE
        uuid, name, bus = (
            value.decode() if isinstance(value, bytes) else str(value)
            for value in (
                nvml.nvmlDeviceGetUUID(handle),
                nvml.nvmlDeviceGetName(handle),
                nvml.nvmlDeviceGetPciInfo(handle).busId,
            )
        )
        print(f"{index}, {uuid}, {memory}, {bus}, {name}")


if __name__ == "__main__":
    main()
