"""Builds the wheel of the package with the libraries of a build inside (./dev wheel), with the standard library only.

The wheel fits every Python 3 from 3.9 on x86-64 Linux. Its runtime needs the C++ library alone; the compiler in it needs
the packages that the build linked: LLVM, ONNX, protobuf, fmt, zlib and zstd; the decoders of images those of JPEG, PNG,
TIFF, WebP and JPEG 2000."""
import argparse
import base64
import ctypes
import hashlib
import pathlib
import platform
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIBRARIES = ("librelaxc.so.0", "librelaxc_builtins.so", "librelaxc_compiler.so")
OPTIONAL = ("librelaxc_images.so",)  # where the build found the libraries of the formats
METADATA = """Metadata-Version: 2.1
Name: relaxc
Version: {version}
Summary: A compiler for neural networks: ONNX models to native code
License: Apache-2.0
Requires-Python: >=3.9
Requires-Dist: numpy
Description-Content-Type: text/markdown

{readme}"""
CHECK = """
import numpy, relaxc, relaxc._library
model = relaxc.compile({model!r}, cache="")
assert model(numpy.zeros((2, 1, 8, 8), numpy.float32)).shape == (2, 10)
print("relaxc", relaxc.__version__, "from", relaxc._library.lib.path)
"""


def contents(build, version):
    """Gives the name and the bytes of each file of the wheel but RECORD."""
    for path in sorted((HERE / "relaxc").iterdir()):
        if path.suffix == ".py" or path.name == "py.typed":
            yield "relaxc/" + path.name, path.read_bytes()
    for name in [*LIBRARIES, *(name for name in OPTIONAL if (build / name).exists())]:
        yield "relaxc/lib/" + name, (build / name).read_bytes()
    info = f"relaxc-{version}.dist-info/"
    metadata = METADATA.format(version=version, readme=(ROOT / "docs/python.md").read_text())
    yield info + "METADATA", metadata.encode()
    yield info + "WHEEL", (f"Wheel-Version: 1.0\nGenerator: relaxc ({version})\nRoot-Is-Purelib: false\n"
                           f"Tag: {tag()}\n").encode()
    yield info + "LICENSE", (ROOT / "LICENSE").read_bytes()


def tag():
    return f"py3-none-linux_{platform.machine()}"


def build_wheel(build, folder):
    """Writes the wheel and returns its path."""
    library = ctypes.CDLL(str(build / LIBRARIES[0]))
    library.relaxc_version.restype = ctypes.c_char_p
    version = library.relaxc_version().decode()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"relaxc-{version}-{tag()}.whl"
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(name, data):
            entry = zipfile.ZipInfo(name)  # of 1980, so that equal contents make equal bytes
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if name.startswith("relaxc/lib/") else 0o644) << 16
            wheel.writestr(entry, data)

        for name, data in contents(build, version):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
            add(name, data)
        name = f"relaxc-{version}.dist-info/RECORD"
        add(name, ("".join(record) + f"{name},,\n").encode())
    return path


def install(wheel, folder):
    """Installs by pip, or where there is no pip as pip would."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(folder)]
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        subprocess.run([*pip, str(wheel)], check=True)
    else:
        zipfile.ZipFile(wheel).extractall(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="the folder of the libraries")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/wheel", help="where the wheel goes")
    arguments = parser.parse_args()
    wheel = build_wheel(arguments.build, arguments.out)
    with tempfile.TemporaryDirectory() as folder:
        install(wheel, folder)
        script = CHECK.format(model=str(ROOT / "examples/digits/digits.onnx"))
        subprocess.run([sys.executable, "-B", "-c", script], check=True, cwd=folder,
                       env={"PYTHONPATH": folder, "PATH": "/usr/bin:/bin"})
    print(f"{wheel} ({wheel.stat().st_size / 1e6:.1f} MB)")


if __name__ == "__main__":
    main()
