"""The declarations of the package are those of api/relaxc.h."""
import ctypes
import os
import re
import subprocess
import sys
import unittest

from relaxc import _library
from support import ROOT


class Declarations(unittest.TestCase):
    @unittest.skipUnless("RELAXC_LAYOUTS" in os.environ, "python_test.cc tells the layouts")
    def test_structs(self):
        layouts = dict(row.split("=") for row in os.environ["RELAXC_LAYOUTS"].split())
        self.assertEqual(layouts.pop("api"), f"{_library.API_VERSION},0")
        for name, layout in layouts.items():
            struct = getattr(_library, "".join(word.capitalize() for word in name.split("_")))
            last = getattr(struct, struct._fields_[-1][0])
            self.assertEqual(f"{ctypes.sizeof(struct)},{last.offset}", layout, name)

    def test_another_library_is_an_import_error(self):
        code = f"import sys; sys.path.insert(0, {str(ROOT / 'api/python')!r}); import relaxc"
        environment = {**os.environ, "RELAXC_LIBRARY": "/lib/x86_64-linux-gnu/libm.so.6"}
        result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        self.assertRegex(result.stderr, "ImportError: .*libm.so.6.*RELAXC_LIBRARY")

    def test_without_numpy_the_error_names_its_package(self):
        code = f"import sys; sys.path.insert(0, {str(ROOT / 'api/python')!r}); sys.modules['numpy'] = None; import relaxc"
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertRegex(result.stderr, "ModuleNotFoundError: relaxc needs NumPy: install python3-numpy")

    def test_functions(self):
        header = (ROOT / "api/relaxc.h").read_text()
        declared = dict(re.findall(r"RELAXC_API [^(]*?relaxc_(\w+)\(([^)]*)\)", header))
        for name, (_, *arguments) in _library._FUNCTIONS.items():
            self.assertIn(name, declared)
            stated = declared[name]
            self.assertEqual(len(arguments), 0 if stated == "void" else stated.count(",") + 1, name)


if __name__ == "__main__":
    unittest.main()
