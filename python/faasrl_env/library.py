"""The C library: its functions and structures, as pkg/sim/sim.h declares them."""

import ctypes
import importlib.machinery
import pathlib
from ctypes import POINTER, c_bool, c_char, c_char_p, c_double, c_int, c_size_t, c_uint64, c_void_p


class Error(ctypes.Structure):
    _fields_ = [("code", c_int), ("message", c_char * 512)]


class Option(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("help", c_char_p), ("low", c_double), ("high", c_double)]


class Field(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("low", c_double), ("high", c_double), ("per_other", c_bool)]


class Dimension(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("option_count", c_size_t), ("labels", POINTER(c_char_p))]


class Shape(ctypes.Structure):
    _fields_ = [
        ("clusters", c_size_t),
        ("functions", c_size_t),
        ("observation_size", c_size_t),
        ("global_size", c_size_t),
        ("action_size", c_size_t),
        ("mask_size", c_size_t),
        ("observation_fields", POINTER(Field)),
        ("global_fields", POINTER(Field)),
        ("dimensions", POINTER(Dimension)),
    ]


class Block(ctypes.Structure):
    _fields_ = [
        (name, c_void_p)
        for name in (
            "observations",
            "globals",
            "actions",
            "rewards",
            "masks",
            "present",
            "terminated",
            "truncated",
            "figures",
        )
    ]


def _load():
    here = pathlib.Path(__file__).parent
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = here / f"_sim{suffix}"
        if path.exists():
            return ctypes.CDLL(str(path))
    raise ImportError(f"faasrl_env: the simulator is not in {here}: install with pip install ./python")


sim = _load()
for name, result, arguments in (
    ("sim_open", c_void_p, [c_char_p, POINTER(c_char_p), POINTER(Error)]),
    ("sim_free", None, [c_void_p]),
    ("sim_shape", POINTER(Shape), [c_void_p]),
    ("sim_block", POINTER(Block), [c_void_p]),
    ("sim_reset", None, [c_void_p, c_uint64]),
    ("sim_step", None, [c_void_p]),
    ("sim_option", POINTER(Option), [c_size_t]),
):
    function = getattr(sim, name)
    function.restype, function.argtypes = result, arguments


def strings(symbol):
    """A NULL-terminated array of strings of the library."""
    found = []
    array = (c_char_p * 64).in_dll(sim, symbol)
    for value in array:
        if value is None:
            break
        found.append(value.decode())
    return found
