"""Makes a wheel of the package foreshard (PEP 517), with the catalogue inside.

    pip wheel . --no-build-isolation

It builds in build/release, and starts from what stands there. The wheel needs the shared libraries of
Debian that the group `wheel` of tools/packages.txt names.
"""

import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import sysconfig
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/release"
DATE = (2020, 1, 1, 0, 0, 0)  # of all files, so that equal sources give equal wheels
LICENCES = ("LICENSE", "NOTICE", "THIRD_PARTY")


def get_requires_for_build_wheel(config_settings=None):
    return []


def version():
    return re.search(r"project\(foreshard VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def info():
    return f"foreshard-{version()}.dist-info"


def metadata():
    head = (f"Metadata-Version: 2.1\nName: foreshard\nVersion: {version()}\n"
            "Summary: Forecasts the time, memory and cost of sharding strategies before GPUs are booked\n"
            "License: Apache-2.0\nRequires-Python: >=3.10\nProvides-Extra: frames\n"
            'Requires-Dist: pandas ; extra == "frames"\nDescription-Content-Type: text/markdown\n')
    return head + "".join(f"License-File: {name}\n" for name in LICENCES) + "\n" + (ROOT / "README.md").read_text()


def files():
    """What is in the wheel: names and bytes."""
    package = BUILD / "python/foreshard"
    module = f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    for path in sorted(package.iterdir()):
        if path.is_file() and (path.suffix != ".so" or path.name == module):
            yield f"foreshard/{path.name}", path.read_bytes()
    if not (package / module).is_file():
        raise SystemExit(f"{BUILD} was built with another Python: there is no {module}")
    for path in sorted((ROOT / "configs").rglob("*")):
        if path.is_file():
            yield f"foreshard/{path.relative_to(ROOT)}", path.read_bytes()
    for name in LICENCES:
        yield f"{info()}/{name}", (ROOT / name).read_bytes()
    yield f"{info()}/METADATA", metadata().encode()
    wheel = f"Wheel-Version: 1.0\nGenerator: foreshard\nRoot-Is-Purelib: false\nTag: {tag()}\n"
    yield f"{info()}/WHEEL", wheel.encode()


def tag():
    python = "cp" + sysconfig.get_config_var("py_version_nodot")
    return f"{python}-{python}-{re.sub(r'[-.]', '_', sysconfig.get_platform())}"


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    folder = pathlib.Path(metadata_directory) / info()
    folder.mkdir()
    (folder / "METADATA").write_text(metadata())
    return folder.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["cmake", "--preset", "release", "-DFORESHARD_PYTHON=ON", "-DFORESHARD_TESTS=OFF",
                        "-DFORESHARD_BENCHMARKS=OFF", f"-DPython3_EXECUTABLE={sys.executable}"], cwd=ROOT, check=True)
    subprocess.run(["cmake", "--build", BUILD, "--target", "foreshard_python", "foreshard_python_files"], check=True)
    name = f"foreshard-{version()}-{tag()}.whl"
    record = []
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(path, content):
            entry = zipfile.ZipInfo(path, DATE)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)
        for path, content in files():
            add(path, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(content)}")
        own = f"{info()}/RECORD"
        add(own, "\n".join(record + [f"{own},,", ""]))
    return name
