"""The package finds its library in a wheel and under an installation's prefix."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import relaxc._library
from support import ROOT

sys.path.append(str(ROOT / "api/python"))
import wheel  # noqa: E402

BUILD = pathlib.Path(relaxc._library.lib.path).resolve().parent
SCRIPT = """
import numpy, relaxc, relaxc._library
x = numpy.ones(3, numpy.float32)
print(relaxc._library.lib.path, relaxc.load({artifact!r})(x, x))
"""


class Installed(unittest.TestCase):
    def run_in(self, folder, packages):
        from support import ADD
        artifact = str(folder / "add.so")
        relaxc.Module.from_text(ADD).compile().save(artifact)
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(packages)}
        outcome = subprocess.run([sys.executable, "-B", "-c", SCRIPT.format(artifact=artifact)], env=environment,
                                 cwd=folder, capture_output=True, text=True)
        self.assertEqual(outcome.stderr, "")
        return outcome.stdout

    def test_a_wheel(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            path = wheel.build_wheel(BUILD, folder)
            self.assertRegex(path.name, r"^relaxc-\d+\.\d+\.\d+-py3-none-linux_\w+\.whl$")
            with zipfile.ZipFile(path) as packed:
                self.assertIsNone(packed.testzip())
                record = next(packed.read(entry).decode() for entry in packed.namelist() if entry.endswith("RECORD"))
                for library in (*wheel.LIBRARIES, *wheel.OPTIONAL):
                    self.assertEqual("relaxc/lib/" + library in packed.namelist(), (BUILD / library).exists())
                self.assertEqual(sorted(line.split(",")[0] for line in record.splitlines()),
                                 sorted(packed.namelist()))
                packed.extractall(folder / "packages")
            out = self.run_in(folder, folder / "packages")
            self.assertEqual(out, f"{folder}/packages/relaxc/lib/librelaxc.so.0 [2. 2. 2.]\n")

    def test_a_prefix(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            packages = folder / "lib/python3/dist-packages"
            shutil.copytree(ROOT / "api/python/relaxc", packages / "relaxc")
            for library in wheel.LIBRARIES:
                shutil.copy(BUILD / library, folder / "lib" / library)
            self.assertEqual(self.run_in(folder, packages), f"{folder}/lib/librelaxc.so.0 [2. 2. 2.]\n")

    @unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
    def test_a_compiler_whose_libraries_are_missing(self):
        for library, remedy in (("libonnx.so.9", r"install libonnx.so.9 \(apt-get install libonnx-dev\)"),
                                ("libLLVM-77.so.1", r"install libLLVM-77.so.1 \(apt-get install libllvm77\)"),
                                ("libother.so", "install libother.so, or"), (None, "install librelaxc_compiler.so beside")):
            with tempfile.TemporaryDirectory() as folder:
                shutil.copy(BUILD / "librelaxc.so.0", folder)
                if library:
                    build = ["cc", "-shared", "-x", "c", "/dev/null", "-o"]
                    subprocess.run([*build, f"{folder}/{library}", f"-Wl,-soname,{library}"], check=True)
                    subprocess.run([*build, f"{folder}/librelaxc_compiler.so", "-Wl,--no-as-needed", "-x", "none",
                                    f"{folder}/{library}"], check=True)
                    os.remove(f"{folder}/{library}")
                environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "api/python"), "RELAXC_LIBRARY": folder}
                outcome = subprocess.run([sys.executable, "-B", "-c", "import relaxc; relaxc.compile('a.onnx', cache='')"],
                                         env=environment, capture_output=True, text=True)
                self.assertRegex(outcome.stderr, remedy)

    def test_without_a_library(self):
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "api/python"), "RELAXC_LIBRARY": "/none.so"}
        outcome = subprocess.run([sys.executable, "-B", "-c", "import relaxc"], env=environment, capture_output=True,
                                 text=True)
        self.assertRegex(outcome.stderr, r"ImportError: librelaxc.so.0 could not be opened; set RELAXC_LIBRARY.*\n.*/none.so")


if __name__ == "__main__":
    unittest.main()
