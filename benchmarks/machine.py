"""What the numbers of a benchmark belong to: machine, versions, date."""

import platform
from datetime import date
from os import cpu_count
from pathlib import Path

from kismet_env.provenance import package_versions


def machine() -> str:
    """Return the machine, the versions of what matters and today's date, as two lines."""
    versions = ", ".join(f"{name} {version}" for name, version in package_versions().items())
    return (
        f"{_processor()}, {cpu_count()} cores, {platform.system()} {platform.machine()}; {date.today().isoformat()}\n"
        f"Python {platform.python_version()}, {versions}"
    )


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    for line in cpuinfo.read_text().splitlines() if cpuinfo.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


if __name__ == "__main__":
    print(machine())
