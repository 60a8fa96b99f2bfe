"""Prints what an extension module of this Python is built with, for LissomePythonPackage.cmake.

One line, three fields with semicolons between: Python's include folder, suffix of extension modules, the folder that
holds pybind11/pybind11.h (of the package pybind11, else of torch; empty where there is neither).
"""

import importlib.util
import pathlib
import sysconfig

folder = ""
for name, inner in (("torch", "include"), ("pybind11", "include")):
    spec = importlib.util.find_spec(name)
    for place in (spec.submodule_search_locations or []) if spec else []:
        found = pathlib.Path(place) / inner
        if not folder and (found / "pybind11" / "pybind11.h").is_file():
            folder = str(found.resolve())
print(sysconfig.get_path("include"), sysconfig.get_config_var("EXT_SUFFIX"), folder, sep=";")
