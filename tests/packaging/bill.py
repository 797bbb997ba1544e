#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of a package, as CycloneDX JSON, and the licenses of all that is in it.

bill.py BUILD OUT [--shipped FOLDER]

Three kinds of components: libraries that are shipped (the files in FOLDER, named as the system's or with the hash that
auditwheel adds), headers and static libraries that were compiled in (ninja's record of what each object read), and the
fonts that parallax-gui embeds. Names, versions and licenses are those of the packages that own the files: Debian's
(dpkg) or wheels' (METADATA of a .dist-info folder). A file without an owner is an error.

OUT gets bom.cdx.json, copyright (a file of Debian's form), licenses/PACKAGE and, of all of them, third-party.txt.
"""

import argparse
import email.parser
import hashlib
import json
import os
import re
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2]


@dataclass
class Component:
    name: str
    version: str
    purl: str
    licenses: list[str]
    text: str  # its copyright file or license
    use: set[str] = field(default_factory=set)  # "shipped", "compiled in", "embedded"
    files: dict[str, str] = field(default_factory=dict)  # name of a shipped file -> SHA-256


def fail(sentence):
    sys.exit(f"bill.py: {sentence}")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def debian_owners(paths):
    """File -> package, for those that a package has. dpkg knows a file by the name it was packed with: / or /usr."""
    owners = {}
    names = {}
    for path in paths:
        for name in (path, str(Path(path).resolve())):
            for spelled in (name, name.removeprefix("/usr"), f"/usr{name}"):
                names.setdefault(spelled, set()).add(path)
    listed = subprocess.run(["dpkg-query", "-S", *names], check=False, capture_output=True, text=True).stdout
    for line in listed.splitlines():
        packages, _, name = line.partition(": ")
        if name in names and not packages.startswith("diversion"):
            owners |= dict.fromkeys(names[name], packages.split(",")[0].strip())
    return owners


def short_licenses(text):
    """The names after `License:` in a copyright file that machines can read (DEP 5)."""
    found = {match.strip() for match in re.findall(r"^License:[ \t]*(\S[^\n]*)", text, re.MULTILINE)}
    return sorted(found) or ["see the copyright file"]


def debian_component(package):
    name, version, architecture = run("dpkg-query", "-W", "-f", "${Package} ${Version} ${Architecture}", package).split()
    file = Path("/usr/share/doc") / name / "copyright"
    if not file.exists():
        fail(f"{file} is missing, which has the license of {name}: reinstall the package with its documents")
    text = file.read_text(errors="replace")
    return Component(name, version, f"pkg:deb/debian/{name}@{version.replace('+', '%2B')}?arch={architecture}", short_licenses(text), text)


class Wheels:
    """Wheels by their .dist-info folders: next to a file's packages, or in `dist-info` of a toolkit's root."""

    def __init__(self):
        self.records = {}  # folder of .dist-info folders -> {end of a file's path: .dist-info}

    def owner(self, path):
        for folder in Path(path).resolve().parents:
            for near in (folder, folder / "dist-info"):
                if near not in self.records:
                    self.records[near] = self.read(near)
                known = self.records[near]
                for parts in (3, 2, 1):  # of the path: names alone are not unique
                    info = known.get("/".join(Path(path).resolve().parts[-parts:]))
                    if info:
                        return info
            if folder.name in ("site-packages", "dist-packages"):
                break
        return None

    @staticmethod
    def read(folder):
        known = {}
        for info in sorted(folder.glob("*.dist-info")):
            for line in (info / "RECORD").read_text().splitlines():
                parts = line.split(",")[0].split("/")
                for count in (1, 2, 3):
                    known.setdefault("/".join(parts[-count:]), info)
        return known


def wheel_component(info):
    metadata = email.parser.Parser().parsestr((info / "METADATA").read_text(errors="replace"))
    name, version = metadata["Name"], metadata["Version"]
    classifiers = [line.split(" :: ")[-1] for line in metadata.get_all("Classifier", []) if line.startswith("License ::")]
    names = [metadata["License-Expression"] or metadata["License"] or " ".join(classifiers) or "see the license file"]
    files = [file for file in sorted(info.rglob("*")) if re.match(r"(licen[cs]e|copying|notice)", file.name, re.IGNORECASE) and file.is_file()]
    text = "\n".join(file.read_text(errors="replace") for file in files)
    return Component(name, version, f"pkg:pypi/{name.lower()}@{version}", [names[0].splitlines()[0]], text or names[0])


def original(file):
    """The system's file of a shipped one, among those that the loader knows."""
    wanted = re.sub(r"-[0-9a-f]{8}(?=\.)", "", file.name)
    for line in run("/sbin/ldconfig", "-p").splitlines():
        path = Path(line.rpartition(" => ")[2])
        if line.endswith(path.name) and wanted in (path.name, path.resolve().name) and "x86-64" in line:
            return str(path)
    return fail(f"{file} comes from no folder of the system")


def compiled_in(build):
    """The headers that an object read and the static libraries that a program was linked with, outside of the tree."""
    inside = (str(SOURCES) + "/", str(build.resolve()) + "/")
    headers = {os.path.normpath(os.path.join(build, line.strip()))
               for line in run("ninja", "-C", str(build), "-t", "deps").splitlines() if line.startswith("    ")}
    archives = set(re.findall(r"(/[^ \n]+\.a)(?= |$)", (build / "build.ninja").read_text(), re.MULTILINE))
    return sorted(path for path in headers | archives if path.startswith("/") and not path.startswith(inside) and os.path.exists(path))


def fonts(build):
    found = re.search(r"^PARALLAX_FONT_FOLDER:PATH=(/.*)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE)
    return [str(Path(found[1]) / f"{name}.ttf") for name in ("DejaVuSans", "DejaVuSansMono")] if found else []


def collect(build, shipped):
    uses = [("compiled in", path, None) for path in compiled_in(build)] + [("embedded", path, None) for path in fonts(build)]
    uses += [("shipped", original(file), file) for file in shipped]
    wheels = Wheels()
    debian = debian_owners({path for _, path, _ in uses})
    components = {}
    for use, path, file in uses:
        owner = debian.get(path) or wheels.owner(path)
        if owner is None:
            fail(f"no package owns {path}, which is {use}: its license is unknown")
        if owner not in components:
            components[owner] = debian_component(owner) if isinstance(owner, str) else wheel_component(owner)
        components[owner].use.add(use)
        if file is not None:
            components[owner].files[file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
    return sorted(components.values(), key=lambda component: component.name)


def version():
    return re.search(r"project\(parallax VERSION ([0-9.]+)", (SOURCES / "CMakeLists.txt").read_text())[1]


def bill(components):
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0")) or int(datetime.now(timezone.utc).timestamp())
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "application", "bom-ref": "parallax", "name": "parallax", "version": version(),
                          "licenses": [{"license": {"id": "Apache-2.0"}}]},
        },
        "components": [],
        "dependencies": [{"ref": "parallax", "dependsOn": [component.purl for component in components]}],
    }
    for component in components:
        document["components"].append({
            "type": "library",
            "bom-ref": component.purl,
            "name": component.name,
            "version": component.version,
            "purl": component.purl,
            "licenses": [{"license": {"name": name}} for name in component.licenses],
            "properties": [{"name": "parallax:use", "value": use} for use in sorted(component.use)],
            "components": [{"type": "file", "name": name, "hashes": [{"alg": "SHA-256", "content": value}]}
                           for name, value in sorted(component.files.items())],
        })
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).digest()
    document["serialNumber"] = f"urn:uuid:{uuid.UUID(bytes=digest[:16], version=4)}"
    return document


def copyright_text(components):
    """Debian's copyright file (DEP 5) of the package."""
    text = ("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: Parallax\n\n"
            "Files: *\nCopyright: 2026 The Parallax authors\nLicense: Apache-2.0\n"
            " On Debian systems the Apache License, Version 2.0, is in /usr/share/common-licenses/Apache-2.0.\n"
            "Comment: The programs contain code of headers, of static libraries and fonts from the packages below;\n"
            " third-party.txt, next to this file, has the copyright files of all.\n .\n")
    return text + "".join(f" {component.name} {component.version}: {'; '.join(component.licenses)}\n" for component in components)


def third_party(components):
    """The copyright files and licenses of all components, each once."""
    text = ""
    for shared in dict.fromkeys(component.text for component in components):
        names = [f"{component.name} {component.version}" for component in components if component.text == shared]
        text += f"======== {', '.join(names)}\n\n{shared.rstrip()}\n\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--shipped", type=Path)
    arguments = parser.parse_args()
    shipped = sorted(file for file in arguments.shipped.rglob("*.so*") if file.is_file()) if arguments.shipped else []
    if arguments.shipped and not shipped:
        fail(f"there are no libraries in {arguments.shipped}")
    components = collect(arguments.build, shipped)
    (arguments.out / "licenses").mkdir(parents=True, exist_ok=True)
    (arguments.out / "bom.cdx.json").write_text(json.dumps(bill(components), indent=1) + "\n")
    (arguments.out / "copyright").write_text(copyright_text(components))
    (arguments.out / "third-party.txt").write_text(third_party(components))
    for component in components:
        (arguments.out / "licenses" / component.name).write_text(component.text)
    print(f"{len(components)} components, {len(shipped)} of their libraries shipped: {arguments.out}/bom.cdx.json")


if __name__ == "__main__":
    main()
