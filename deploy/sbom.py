"""Write what an image consists of: every installed Python package, as CycloneDX 1.5.

    python deploy/sbom.py sbom.cdx.json

The same packages give the same bytes. Packages of the base image's system are not in the list: a
scanner reads those from the image itself.
"""

import json
import re
import sys
import uuid
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

ITSELF = "lpcfg"


def name_of(package: Distribution) -> str:
    """Return a package's name as purls have it."""
    return re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()


def component(package: Distribution) -> dict[str, Any]:
    """Describe one package."""
    name, said = name_of(package), package.metadata
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}@{package.version}",
        "name": name,
        "version": package.version,
        "purl": f"pkg:pypi/{name}@{package.version}",
    }
    if said.get("Summary"):
        found["description"] = said["Summary"]
    if said.get("License-Expression"):
        found["licenses"] = [{"expression": said["License-Expression"]}]
    else:
        kinds = [c for c in said.get_all("Classifier") or () if c.startswith("License ::")]
        names = sorted({one.rpartition(" :: ")[2] for one in kinds})
        if names:
            found["licenses"] = [{"license": {"name": one}} for one in names]
    return found


def main() -> None:
    """Write the list to the file that is named."""
    (path,) = sys.argv[1:]
    found = {name_of(one): component(one) for one in distributions()}
    itself = found.pop(ITSELF, {"type": "library", "name": ITSELF, "version": "unknown"})
    components = [found[name] for name in sorted(found)]
    content = json.dumps([itself, components], sort_keys=True)
    listed = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {"component": {**itself, "type": "application"}},
        "components": components,
    }
    Path(path).write_text(json.dumps(listed, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
